"""Python with the libraries imported already: each call is a process of its own, without the
seconds of a start.

A server imports torch and the other libraries, not this toolkit, and waits at a socket. A small
program stands in for `python`: it hands its words, surroundings, stdin, stdout and stderr to the
server; the server forks, and the fork does what `python` would do with those words. What is read
before the first line of Python (the hash seed, the encoding of stdout, `-S`) cannot be chosen, and
a signal to the program does not reach the fork: such a test starts a real one.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import final

LIBRARIES = (
    *(
        "torch",
        "lightning_fabric",
        "numpy",
        "pyarrow.csv",
        "pyarrow.parquet",
        "pydantic",
        "yaml",
        "tokenizers",
    ),
    *(
        "safetensors.torch",
        "sacrebleu",
        "rapidfuzz.distance",
        "rouge_score.rouge_scorer",
        "typer",
        "rich.console",
    ),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "PIL.Image", "pytest"),
)
SERVER = r"""
import atexit, importlib, json, os, runpy, select, signal, socket, sys, threading, traceback

def call(words):
    sys.argv = words[1:] if words[0] == "-m" else words
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")

def code_of(words):
    try:
        call(words)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

def run(order, files):
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(order["folder"])
    env = order["env"]
    os.environ.clear()
    os.environ.update(env)
    own = [] if env.get("PYTHONSAFEPATH") else [order["folder"]]
    sys.path[:] = [*own, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *PATH]
    code = code_of(order["words"])
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads any more, or it was closed
            code = code or 120
    return code & 255

def order_of(line):
    size, files, _, _ = socket.recv_fds(line, 8, 3)
    text = b""
    while size and len(text) < int(size):
        part = line.recv(int(size) - len(text))
        if not part:
            break
        text += part
    if not size or len(text) < int(size):  # the caller was killed before it had said all
        for file in files:
            os.close(file)
        return None, []
    return json.loads(text), files

name, *modules = sys.argv[1:]
given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
PATH = [path for path in sys.path if path and path not in given]
for module in modules:
    importlib.import_module(module)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
listening = socket.socket(socket.AF_UNIX)
listening.bind(name + ".new")
listening.listen()
os.rename(name + ".new", name)  # now it can be called
running = []
while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:  # which is closed at the end of the tests
    line, _ = listening.accept()
    try:
        order, files = order_of(line)
    except ConnectionError:
        order, files = None, []
    if order is None:
        line.close()
        continue
    if keeper := os.fork():  # who waits for the end, however it comes
        running = [one for one in [*running, keeper] if not os.waitpid(one, os.WNOHANG)[0]]
    elif number := os.fork():
        line.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
        os._exit(0)
    else:
        line.close()
        listening.close()
        os._exit(run(order, files))  # to free all that was forked would take a second
    for file in files:
        os.close(file)
    line.close()
for keeper in running:
    os.waitpid(keeper, 0)
"""
PROGRAM = """#!{python} -IS
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({name!r})
order = json.dumps({{"words": sys.argv[1:], "folder": os.getcwd(), "env": dict(os.environ)}}).encode()
socket.send_fds(line, [b"%8d" % len(order)], [0, 1, 2])
line.sendall(order)
code = int(line.recv(8))
os._exit(code if code >= 0 else 128 - code)  # as a shell counts signals
"""


@final
class Warm:
    """The server, and the program that calls it."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder / "socket")
        self.python = str(folder / "python")
        """To be called in place of `sys.executable`."""
        Path(self.python).write_text(PROGRAM.format(python=sys.executable, name=self.name))
        Path(self.python).chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, self.name, *LIBRARIES], stdin=subprocess.PIPE
        )
        while not Path(self.name).exists():
            assert self.process.poll() is None, "the server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """End it, and what it started."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
