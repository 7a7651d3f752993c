"""MariaDB with MyRocks of this machine, as guests take it along: the server, its client, and what it reads."""

import os
import shutil

from .. import processes
from ..processes import RunFailed
from . import machine
from .initramfs import Initramfs

PLUGIN = "/usr/lib/mysql/plugin/ha_rocksdb.so"
MESSAGES = "/usr/share/mysql/english/errmsg.sys"


def add_to(archive: Initramfs) -> None:
    programs = {name: shutil.which(name, path=machine.PATH) for name in ("mariadbd", "mariadb")}
    missing = [name for name, path in {**programs, "ha_rocksdb.so": PLUGIN}.items()
               if path is None or not os.path.exists(path)]
    if missing:
        raise RunFailed(f"{missing[0]} is missing: run scripts/install-dependencies databases")
    machine.add_programs(archive, {name: path for name, path in programs.items() if path is not None})
    archive.add_program(PLUGIN.lstrip("/"), PLUGIN)
    archive.add_file(MESSAGES.lstrip("/"), MESSAGES, 0o644)


def version() -> str:
    """Of the server; "none" if there is none."""
    server = shutil.which("mariadbd", path=machine.PATH)
    return processes.run([server, "--version"]).split("Ver ")[-1].split(" ")[0] if server else "none"
