"""Compresses files on a machine that may lose power at any time: each file is a run on a server on the same machine.

python examples/pipeline.py work OUT     runs a worker that writes to the folder OUT
python examples/pipeline.py add FILE...  starts a run for each file, and waits for the results
"""

import gzip
import hashlib
import logging
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import kagzi

OUT = Path()


@dataclass
class Result:
    sha256: str
    stored: str


@kagzi.step(retry=kagzi.Retry(attempts=-1, max=60))
def digest(file: str) -> str:
    with open(file, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


@kagzi.step(retry=kagzi.Retry(attempts=-1, max=60))
def store(file: str, sha256: str) -> str:
    """Writes beside the place and then moves: a file that is there is whole, however often this runs."""
    place = OUT / f"{sha256}.gz"
    part = place.with_suffix(f".{os.getpid()}.part")
    with open(file, "rb") as f, gzip.open(part, "wb") as z:
        shutil.copyfileobj(f, z)
    os.replace(part, place)
    return str(place)


@kagzi.workflow(name="file", queue="files")
async def compress(file: str) -> Result:
    sha256 = await digest(file)
    return Result(sha256, await store(file, sha256))


def add(client: kagzi.Client, files: list[str]) -> list[kagzi.Run[Result] | kagzi.ServerError]:
    """Starts a run for each file in one commit. A file that has had its run gets no second one."""
    def known(i: int) -> kagzi.StartOptions:
        s = os.stat(files[i])
        mark = hashlib.sha256(f"{files[i]} {s.st_size} {s.st_mtime_ns}".encode()).hexdigest()[:24]
        return {"id": f"file:{mark}", "reuse": "never"}

    return client.start_many(compress, [str(Path(f).absolute()) for f in files], known)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["add"]:
        for run in add(kagzi.Client(), sys.argv[2:]):
            print(run if isinstance(run, kagzi.ServerError) else run.result())
    else:
        OUT = Path(sys.argv[2])
        kagzi.serve(compress)
