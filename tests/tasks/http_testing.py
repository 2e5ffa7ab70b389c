# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server in this process that sends one file."""

from collections.abc import Iterator, Mapping
import contextlib
import http.server
import os
import re
import threading
from typing import Optional
from unittest import mock

import attrs


@attrs.define
class Server:
  """The behavior of a server, and a record of its requests.

  Attributes:
    content: The file.
    knows_ranges: Whether it can send the rest of the file.
    status: What it answers; the file is sent with 200 only.
    headers: What it adds to its answers.
    max_sent: After how many bytes it ends the connection; None for never.
    url: Its address.
    ranges: The ranges that it was asked for; None for the whole file.
    sent: How many bytes it has sent.
  """

  content: bytes
  knows_ranges: bool = True
  status: int = 200
  headers: Mapping[str, str] = attrs.Factory(dict)
  max_sent: Optional[int] = None
  url: str = ''
  ranges: list[Optional[str]] = attrs.Factory(list)
  sent: int = 0


@contextlib.contextmanager
def serve(content: bytes, path: str = 'file', **options) -> Iterator[Server]:
  """Serves a file while the block runs; `options` are those of `Server`."""
  server = Server(content, **options)
  with http.server.ThreadingHTTPServer(
      ('127.0.0.1', 0), _build_handler(server)
  ) as httpd:
    server.url = f'http://127.0.0.1:{httpd.server_port}/{path}'
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    try:
      with mock.patch.dict(
          os.environ, no_proxy='127.0.0.1', NO_PROXY='127.0.0.1'
      ):
        yield server
    finally:
      httpd.shutdown()
      thread.join()


def _build_handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
  """Returns the class that answers requests as the server is told."""

  class Handler(http.server.BaseHTTPRequestHandler):

    def do_HEAD(self):
      self._answer(server.status, 0)

    def do_GET(self):
      asked = self.headers.get('Range')
      server.ranges.append(asked)
      size = len(server.content)
      start = 0
      if asked is not None and server.knows_ranges:
        start = int(re.fullmatch(r'bytes=(\d+)-', asked)[1])
      if server.status != 200:
        self._answer(server.status, 0)
      elif start and start >= size:
        self._answer(416, 0, f'bytes */{size}')
      else:
        partial = f'bytes {start}-{size - 1}/{size}' if start else None
        self._answer(206 if start else 200, size - start, partial)
        body = server.content[start:][: server.max_sent]
        # The client may have gone away.
        with contextlib.suppress(ConnectionError):
          # Before, for the client may have all of it at once.
          server.sent += len(body)
          self.wfile.write(body)

    def _answer(self, status, length, content_range=None):
      self.send_response(status)
      self.send_header('Content-Length', str(length))
      if content_range is not None:
        self.send_header('Content-Range', content_range)
      for name, value in server.headers.items():
        self.send_header(name, value)
      self.end_headers()

    def log_message(self, *args):
      del args  # Tests are silent.

  return Handler
