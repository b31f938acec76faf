"""Hosts of a network of their own: a namespace each, cabled to one switch, whose cables can be pulled out.

A cable that is pulled at the switch is what a dead switch or a firewall is: both ends keep their link, and every packet
is lost without a word. A host whose own link is down knows that it is cut off.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
_SERVER = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LabHost:
    """One host: a network namespace with one address."""

    namespace: str
    address: str
    switch: str
    port: str  #: The switch's end of its cable.

    @property
    def inside(self) -> tuple[str, ...]:
        """What runs a command on this host; the process that runs it becomes the command."""
        return (str(IP), "netns", "exec", self.namespace)

    def pull_cable(self) -> None:
        """Lose every packet between this host and all others, silently."""
        _ip("-n", self.switch, "link", "set", self.port, "nomaster")

    def plug_cable(self) -> None:
        """Undo ``pull_cable``."""
        _ip("-n", self.switch, "link", "set", self.port, "master", "bridge0")

    def link_down(self) -> None:
        """Switch this host's own network card off."""
        _ip("-n", self.namespace, "link", "set", "net0", "down")

    def link_up(self) -> None:
        """Switch it on again."""
        _ip("-n", self.namespace, "link", "set", "net0", "up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A network in which this process is the first host."""

    address: str
    hosts: tuple[LabHost, ...]


@contextlib.contextmanager
def network_lab(hosts: int) -> Iterator[Lab]:
    """Have so many hosts beside this one until the block ends; skip where that takes more rights than there are."""
    if IP is None:
        pytest.skip("the program ip is not installed: apt install iproute2")
    tag = secrets.token_hex(3)
    # 198.18.0.0/15 is set aside for tests of networks; the rest is chance, for two runs at once.
    subnet = f"198.18.{secrets.randbelow(256)}"
    with contextlib.ExitStack() as stack:
        switch = f"cp{tag}-switch"
        _add_namespace(stack, switch)
        _ip("-n", switch, "link", "add", "bridge0", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge0", "up")
        ours = f"cp{tag}"
        _ip("link", "add", ours, "type", "veth", "peer", "name", "port0", "netns", switch)
        stack.callback(_ip, "link", "del", ours)
        _attach(f"{subnet}.{_SERVER}", ours, (), switch, "port0")
        made = []
        for number in range(1, hosts + 1):
            namespace, port, address = f"cp{tag}-{number}", f"port{number}", f"{subnet}.{_SERVER + number}"
            _add_namespace(stack, namespace)
            _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", namespace, "link", "add", "net0", "type", "veth", "peer", "name", port, "netns", switch)
            _attach(address, "net0", ("-n", namespace), switch, port)
            made.append(LabHost(namespace=namespace, address=address, switch=switch, port=port))
        yield Lab(address=f"{subnet}.{_SERVER}", hosts=tuple(made))


def _add_namespace(stack: contextlib.ExitStack, name: str) -> None:
    try:
        _ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["no reason given"])[0]
        pytest.skip(f"not possible here: this account may make no network namespace ({reason})")
    stack.callback(_ip, "netns", "del", name)


def _attach(address: str, card: str, where: tuple[str, ...], switch: str, port: str) -> None:
    _ip(*where, "address", "add", f"{address}/24", "dev", card)
    _ip(*where, "link", "set", card, "up")
    _ip("-n", switch, "link", "set", port, "master", "bridge0")
    _ip("-n", switch, "link", "set", port, "up")


def _ip(*arguments: str) -> None:
    subprocess.run([str(IP), *arguments], check=True, capture_output=True, text=True)
