"""A stand-in for the Hugging Face hub: as much as is asked to upload and download a model."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_a_token_of_a_test"
SHA = "1" * 40


class Hub(ThreadingHTTPServer):
    """Repositories in memory; `calls` has the method and path of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.calls: list[str] = []
        self.over = False
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def create(self, made: dict[str, Any]) -> str:
        """A repository, if it is not there."""
        name = (
            f"{made['organization']}/{made['name']}"
            if made.get("organization")
            else str(made["name"])
        )
        self.repositories.setdefault(name, {})
        self.private |= (
            {name} if made.get("private") or made.get("visibility") == "private" else set()
        )
        return f"{self.address}/{name}"

    def commit(self, name: str, body: bytes) -> None:
        """Take the files of a commit, one on each line."""
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                self.repositories[name][entry["value"]["path"]] = base64.b64decode(
                    entry["value"]["content"]
                )

    def stop(self) -> None:
        """End it, and the connections that are open."""
        self.over = True
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *words: object) -> None:
        """Nothing."""

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def values(self, found: Any) -> None:
        self.answer(200, json.dumps(found).encode(), Content_Type="application/json")

    def refuse(self, code: int, kind: str, message: str) -> None:
        self.answer(code, b"", X_Error_Code=kind, X_Error_Message=message)

    def parse_request(self) -> bool:
        """None is answered any more at the end."""
        self.close_connection = self.server.over
        return not self.server.over and super().parse_request()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.calls.append(f"{self.command} {self.path}")
        asked = re.match(r"/api/models/(\w+/\w+)(?:/(revision|tree)/([^/?]+))?", self.path)
        if not asked:
            self.file()
        elif asked[1] not in self.server.repositories:
            self.refuse(401, "RepoNotFound", "Repository not found")
        elif asked[3] not in (None, "main", SHA):
            self.refuse(404, "RevisionNotFound", "Invalid rev id")
        elif asked[2] == "tree":
            files = self.server.repositories[asked[1]].items()
            self.values(
                [{"type": "file", "path": n, "size": len(b), "oid": _sum(b)} for n, b in files]
            )
        else:
            names = [{"rfilename": name} for name in self.server.repositories[asked[1]]]
            self.values({"id": asked[1], "modelId": asked[1], "sha": SHA, "siblings": names})

    def file(self) -> None:
        asked = re.match(r"/(\w+/\w+)/resolve/[^/]+/([^?]+)", self.path)
        body = self.server.repositories.get(asked[1], {}).get(asked[2]) if asked else None
        if body is None:
            self.refuse(404, "EntryNotFound", "Entry not found")
        else:
            self.answer(200, body, ETag=f'"{_sum(body)}"', X_Repo_Commit=SHA)

    def do_POST(self) -> None:
        self.server.calls.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        commit = re.match(r"/api/models/(\w+/\w+)/commit/main", self.path)
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.refuse(401, "", "Invalid username or password.")
        elif self.path == "/api/repos/create":
            self.values({"url": self.server.create(json.loads(body))})
        elif self.path == "/api/validate-yaml":
            self.values({"errors": [], "warnings": []})
        elif commit:
            self.server.commit(commit[1], body)
            self.values(
                {"commitUrl": f"{self.server.address}/{commit[1]}/commit/{SHA}", "commitOid": SHA}
            )
        else:
            assert "/preupload/" in self.path, self.path
            files = json.loads(body)["files"]
            usual = {"uploadMode": "regular", "shouldIgnore": False}
            self.values({"files": [{"path": file["path"], **usual} for file in files]})


def _sum(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
