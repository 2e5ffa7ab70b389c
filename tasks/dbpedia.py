# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""DBpedia topic classification, like AG News except for the texts."""

import attrs

from tasks import ag_news
from tasks import sources
from tasks.texts import text_files

DBPEDIA = attrs.evolve(
    ag_news.AG_NEWS,
    name='dbpedia',
    data=text_files.Texts('dbpedia', 'DBpedia', 14),
    source=sources.Dataset(
        name='dbpedia',
        source='Zhang et al. 2015, at Google Drive',
        licence='CC BY-SA 3.0',
        files=(
            sources.RemoteFile(
                url=(
                    'https://drive.google.com/uc?export=download&confirm=t&'
                    'id=0Bz8a_Dbh9QhbQ2Vic1kxMmZZQ1k'
                ),
                path='dbpedia_csv.tar.gz',
                digest='md5:dca7b1ae12b1091090db52aa7ec5ca64',
                size=68_341_698,
                unpacked=('dbpedia_csv/train.csv', 'dbpedia_csv/test.csv'),
            ),
        ),
        by_hand='dbpedia.jsonl.gz (rows with split, text and label)',
    ),
)
