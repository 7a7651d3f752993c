"""What every guest consists of: a kernel that scripts/fetch-guest-kernel has unpacked into a directory, and programs of
this machine and of that directory. What is missing is a RunFailed that says how to get it."""

import glob
import lzma
import os
import shutil
import struct
from collections.abc import Iterable, Mapping

from ..processes import RunFailed
from .initramfs import Initramfs, Modules, read_module

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def program(name: str) -> str:
    """The path of a program of this machine."""
    found = shutil.which(name, path=PATH)
    if found is None:
        raise RunFailed(f"{name} is missing: run scripts/install-dependencies guest")
    return found


def base_archive() -> Initramfs:
    """Folders, busybox as /bin/sh, and what C++ programs load when a thread of theirs ends."""
    archive = Initramfs()
    for name in ("dev", "proc", "sys", "tmp", "etc", "root", "run"):
        archive.add(name, b"", 0o040755)
    archive.add_program("bin/busybox", program("busybox"))
    archive.add("bin/sh", b"busybox", 0o120777)
    archive.add_file("lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libgcc_s.so.1")
    return archive


def add_programs(archive: Initramfs, programs: dict[str, str]) -> None:
    """Adds programs and libraries, by their name in /bin and their path here."""
    for name, source in programs.items():
        if not os.path.exists(source):
            raise RunFailed(f"{source} has not been built")
        archive.add_program(f"bin/{name}", source)


def add_tools(archive: Initramfs, kernel: str, tools: Mapping[str, str]) -> None:
    """Adds programs that lie beside the kernel in `kernel`, by their name in /bin and their path in its folder."""
    for name, place in tools.items():
        archive.add_foreign_program(name, f"{kernel}/tools/{place}", f"{kernel}/tools")


def add_modules(archive: Initramfs, kernel: str, wanted: Iterable[str]) -> None:
    """Adds modules of the kernel and what they need. /modules/order lists them in the order in which to load them."""
    modules = Modules(f"{kernel}/lib/modules").with_dependencies(wanted)
    names = [os.path.basename(module).removesuffix(".xz") for module in modules]
    for module, name in zip(modules, names, strict=True):
        archive.add(f"modules/{name}", read_module(module), 0o100644)
    archive.add("modules/order", lines(names), 0o100644)


def lines(words: Iterable[str]) -> bytes:
    """The content of a file that has each of these in a line."""
    return "".join(f"{word}\n" for word in words).encode()


def kernel_image(kernel: str) -> str:
    """The path of the kernel in the directory `kernel`, as the package has it."""
    images = glob.glob(f"{kernel}/boot/vmlinuz-*")
    if not images:
        raise RunFailed(f"there is no kernel in {kernel}: run scripts/fetch-guest-kernel {kernel}")
    return images[0]


def unpacked_kernel(image: str, path: str) -> str:
    """Takes the kernel out of an image that begins with what unpacks it, which takes seconds in the guest, and writes
    it to `path`. Returns that, or the image, if it is packed in a way that is not known here."""
    with open(image, "rb") as file:
        content = file.read()
    # The header of the image: sectors in front of the part that unpacks, and where in that the kernel is.
    sectors = content[0x1F1]
    offset, length = struct.unpack_from("<II", content, 0x248)
    begin = (sectors + 1) * 512 + offset
    packed = content[begin:begin + length]
    if not packed.startswith(b"\xfd7zXZ"):
        return image
    with open(path, "wb") as file:
        file.write(lzma.LZMADecompressor().decompress(packed))
    return path


def boot_arguments(kernel: str, initramfs: str, scratch: str, words: Iterable[str]) -> list[str]:
    """What tells QEMU to boot the kernel in the directory `kernel`, with the console as its standard input and output
    and no device. `words` end the kernel's command line; `scratch` is a folder for the unpacked kernel."""
    # A kernel that looks whether its timer ticks gives up where the host gives QEMU no processor in that moment.
    command_line = " ".join(["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "no_timer_check", *words])
    return ["-display", "none", "-nodefaults", "-serial", "stdio", "-kernel",
            unpacked_kernel(kernel_image(kernel), os.path.join(scratch, "vmlinux")), "-initrd", initramfs,
            "-append", command_line]
