"""The channel report as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cardpicker.operations.channels import Channel, ChannelReport
from cardpicker.operations.text_table import format_table

HEADINGS = ("positive", "negative", "asked", "abstained", "silent")


def channel_lines(report: ChannelReport) -> Iterator[str]:
    """Yield the report line by line: a table of each kind of channel, then why the quiet ones are quiet."""
    drawn = "" if report.cards == report.drawn_from else f", drawn from {report.drawn_from:,}"
    yield f"{report.cards:,} cards{drawn}"
    for title, channels in (("extractor", report.extractors), ("calculator", report.calculators)):
        yield ""
        yield from format_table((title, *HEADINGS), [_cells(channel) for channel in channels], right=HEADINGS)
        for channel in channels:
            yield from _reasons(channel)
    if report.never_ran:
        yield ""
        yield f"never ran on any card: {', '.join(report.never_ran)}"


def _cells(channel: Channel) -> Sequence[str]:
    counts = (
        channel.positive,
        channel.negative,
        sum(channel.asked.values()),
        sum(channel.abstained.values()),
        sum(channel.silent.values()),
    )
    return (channel.name, *(f"{count:,}" for count in counts))


def _reasons(channel: Channel) -> Iterator[str]:
    for kind, reasons in (("asked", channel.asked), ("abstained", channel.abstained), ("silent", channel.silent)):
        if reasons:
            yield f"  {channel.name} {kind}: {_listed(reasons)}"


def _listed(reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered)
