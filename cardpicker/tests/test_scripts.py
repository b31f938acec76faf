"""The scripts around the product, run as a person runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
OPS = PROJECT / "scripts" / "ops"
PATIENCE_S = 120.0


def run(*command: str | Path, cwd: Path = PROJECT, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; a variable given as None is taken out of its environment."""
    variables = {key: value for key, value in (os.environ | environment).items() if value is not None}
    return subprocess.run(
        command, cwd=cwd, env=variables, text=True, capture_output=True, timeout=PATIENCE_S, check=False
    )


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether ``condition`` becomes true within the patience of a test."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_gone(pid: int) -> bool:
    """Whether no process ``pid`` runs; one that nobody has reaped yet does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state in "ZX"


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project that needs no packages, with the script that makes environments."""
    (tmp_path / "scripts" / "ops").mkdir(parents=True)
    shutil.copy(OPS / "ensure_venv.py", tmp_path / "scripts" / "ops")
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    return tmp_path


def make_venv(project: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of ``small_project``."""
    return run(sys.executable, project / "scripts" / "ops" / "ensure_venv.py", "requirements.txt", cwd=project)


def test_environment_is_made_once_and_again_when_requirements_change(small_project: Path) -> None:
    """The second run says and does nothing; a changed file installs; an environment whose Python is gone is made anew."""
    assert "Creating .venv" in make_venv(small_project).stdout
    assert make_venv(small_project).stdout == ""

    (small_project / "requirements.txt").write_text("# still nothing\n")
    changed = make_venv(small_project)
    assert "Installing requirements.txt" in changed.stdout
    assert "Creating" not in changed.stdout

    for python in (small_project / ".venv" / "bin").glob("python*"):
        python.unlink()
    assert "Creating .venv" in make_venv(small_project).stdout


def test_requirement_that_cannot_be_installed_is_tried_again(small_project: Path) -> None:
    """A failed installation is exit code 1 with a line that says what to do, and is not remembered as done."""
    (small_project / "requirements.txt").write_text("./no-such-package.whl\n")

    for _attempt in range(2):
        failed = make_venv(small_project)
        assert failed.returncode == 1
        assert "pip could not install requirements.txt" in failed.stderr


def test_tests_take_the_server_of_the_environment_first() -> None:
    """CARDPICKER_DATABASE_URL reaches the command as it is, and the command's exit code comes back."""
    url = "postgres://nobody@192.0.2.1/nothing"

    ran = run(
        sys.executable, OPS / "test_database.py", "sh", "-c", "echo $CARDPICKER_DATABASE_URL; exit 5",
        CARDPICKER_DATABASE_URL=url,
    )  # fmt: skip

    assert ran.returncode == 5
    assert ran.stdout.splitlines() == ["Tests use the server of CARDPICKER_DATABASE_URL.", url]


def test_tests_take_a_server_of_their_own_last() -> None:
    """Without a URL and without an engine the command gets an embedded server that is gone afterwards."""
    ask = (
        "import os, psycopg2; url = os.environ['CARDPICKER_DATABASE_URL'];"
        "c = psycopg2.connect(url).cursor(); c.execute('show data_directory'); print(c.fetchone()[0])"
    )

    ran = run(
        sys.executable, OPS / "test_database.py", sys.executable, "-c", ask,
        CARDPICKER_DATABASE_URL=None, DOCKER_HOST="unix:///nowhere/docker.sock",
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    said, data = ran.stdout.splitlines()
    assert said == "Tests use an embedded PostgreSQL on temporary data."
    assert not Path(data).exists()


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("pytest.skip('no browser is installed')", "1 failed"),
        ("pytest.skip('the private cases are absent')", "1 skipped"),
        ("pytest.xfail('known')", "1 xfailed"),
        ("pytest.importorskip('no_such_module')", "1 failed"),
    ],
)
def test_require_all_lets_only_private_cases_be_skipped(tmp_path: Path, body: str, line: str) -> None:
    """Under REQUIRE_ALL=1 a skip for want of something installable is a failure."""
    shutil.copy(PROJECT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(f"import pytest\n\ndef test_it():\n    {body}\n")

    ran = run(
        sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", cwd=tmp_path, REQUIRE_ALL="1"
    )

    assert line in ran.stdout.splitlines()[-1]


def test_require_all_does_not_let_a_module_be_skipped(tmp_path: Path) -> None:
    """A whole module skipped at import fails the run as well."""
    shutil.copy(PROJECT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\n\npytest.importorskip('no_such_module')\n")

    ran = run(
        sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", cwd=tmp_path, REQUIRE_ALL="1"
    )

    assert ran.returncode != 0
    assert "no_such_module" in ran.stdout


def test_supervised_program_ends_with_its_killed_owner(tmp_path: Path) -> None:
    """SIGKILL of the owner ends the program and its children, also one that ignores SIGTERM."""
    script = f"trap '' TERM; sleep 600 & echo $! $$ > {tmp_path}/pids.new; mv {tmp_path}/pids.new {tmp_path}/pids; wait"
    with subprocess.Popen(["sleep", "600"]) as owner:
        command = [sys.executable, "-m", "scripts.ops.supervise", str(owner.pid), "sh", "-c", script]
        with subprocess.Popen(command, cwd=PROJECT) as supervisor:
            assert eventually((tmp_path / "pids").exists)
            owner.kill()
            owner.wait()

            supervisor.wait(PATIENCE_S)
    child, program = map(int, (tmp_path / "pids").read_text().split())
    assert eventually(lambda: is_gone(child) and is_gone(program))


@pytest.mark.parametrize("command", [["migrate"], ["quickstart_report"], ["showmigrations"]])
def test_command_without_a_database_says_what_to_do(tmp_path: Path, command: list[str]) -> None:
    """No server and no URL: one line and exit code 1, no traceback."""
    ran = run(sys.executable, "manage.py", *command, CARDPICKER_DATABASE_URL=None, CARDPICKER_DATA_DIR=str(tmp_path))

    assert ran.returncode == 1
    assert "no database: run scripts/ops/postgres.py start or set CARDPICKER_DATABASE_URL" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_settings_import_without_a_database(tmp_path: Path) -> None:
    """Checks and type checkers load the settings where no server is."""
    ran = run(sys.executable, "manage.py", "check", CARDPICKER_DATABASE_URL=None, CARDPICKER_DATA_DIR=str(tmp_path))

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh", "check.sh", "prettier.sh", "venv.sh"])
def test_shell_script_parses(script: str) -> None:
    """Bash accepts each script as a whole."""
    assert run("bash", "-n", OPS / script).returncode == 0
