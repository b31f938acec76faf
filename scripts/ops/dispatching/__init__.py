"""What a dispatch does when it is killed, capped, paused, idle or beside a web server, in figures; see bench_dispatch.py."""
