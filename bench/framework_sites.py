"""One small site by each of three frameworks, with Plimsoll's middleware as docs/module.md says; `STATE` is its state."""

import asyncio
import os
import time

STATE = os.environ.get("STATE", "")
LINES = ["one\n", "two\n", "three\n"]
FILE = os.environ.get("FILE", "")
EVENT = "data: one\n\n"
# For how long an open stream stays so where nothing tells it that its client has left (s).
OPEN = 5


async def lines(breaks):
    yield LINES[0]
    if breaks:
        raise ValueError("in the middle of a response")
    for line in LINES[1:]:
        await asyncio.sleep(0.05)
        yield line


def lines_of_a_thread(breaks):
    yield LINES[0]
    if breaks:
        raise ValueError("in the middle of a response")
    for line in LINES[1:]:
        time.sleep(0.05)
        yield line


async def events():
    yield EVENT
    await asyncio.sleep(OPEN)


def events_of_a_thread():
    yield EVENT
    time.sleep(OPEN)


def fastapi():
    from fastapi import FastAPI, Request
    from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse, StreamingResponse
    from plimsoll.asgi import Middleware

    site = FastAPI()
    site.add_middleware(Middleware, state=STATE)

    @site.get("/page", response_class=PlainTextResponse)
    async def page(request: Request):
        return f"page {request.scope['plimsoll']['level']}"

    @site.get("/light/page", response_class=PlainTextResponse)
    def light():
        return "light page"

    @site.get("/light/moved")
    def moved():
        return RedirectResponse("/light/page")

    @site.get("/stream")
    async def stream():
        return StreamingResponse(lines(False), media_type="text/plain")

    @site.get("/half")
    async def half():
        return StreamingResponse(lines(True), media_type="text/plain")

    @site.get("/events")
    async def open_stream():
        return StreamingResponse(events(), media_type="text/event-stream")

    @site.get("/file")
    def file():
        return FileResponse(FILE)

    @site.get("/broken")
    def broken():
        raise ValueError("before a response")

    return site


def flask():
    from flask import Flask, Response, redirect, request, send_file
    from plimsoll.wsgi import Middleware

    site = Flask("site")
    site.wsgi_app = Middleware(site.wsgi_app, state=STATE)
    site.get("/page")(lambda: f"page {request.environ['plimsoll.level']}")
    site.get("/light/page", endpoint="light")(lambda: "light page")
    site.get("/light/moved", endpoint="moved")(lambda: redirect("/light/page"))
    site.get("/stream", endpoint="stream")(lambda: Response(lines_of_a_thread(False)))
    site.get("/half", endpoint="half")(lambda: Response(lines_of_a_thread(True)))
    site.get("/events", endpoint="events")(lambda: Response(events_of_a_thread(), mimetype="text/event-stream"))
    site.get("/file", endpoint="file")(lambda: send_file(FILE))

    @site.get("/broken")
    def broken():
        raise ValueError("before a response")

    return site


def _django(is_asgi):
    import django
    from django.conf import settings
    from django.http import FileResponse, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
    from django.urls import path

    def page(request):
        level = request.scope["plimsoll"]["level"] if is_asgi else request.META["plimsoll.level"]
        return HttpResponse(f"page {level}")

    def broken(request):
        raise ValueError("before a response")

    parts, stays = (lines, events) if is_asgi else (lines_of_a_thread, events_of_a_thread)
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="a key of a test")
    global urlpatterns
    urlpatterns = [
        path("page", page),
        path("light/page", lambda request: HttpResponse("light page")),
        path("light/moved", lambda request: HttpResponseRedirect("/light/page")),
        path("stream", lambda request: StreamingHttpResponse(parts(False))),
        path("half", lambda request: StreamingHttpResponse(parts(True))),
        path("events", lambda request: StreamingHttpResponse(stays(), content_type="text/event-stream")),
        path("file", lambda request: FileResponse(open(FILE, "rb"))),
        path("broken", broken),
    ]
    django.setup()


def django_wsgi():
    _django(False)
    from django.core.wsgi import get_wsgi_application
    from plimsoll.wsgi import Middleware

    return Middleware(get_wsgi_application(), state=STATE)


def django_asgi():
    _django(True)
    from django.core.asgi import get_asgi_application
    from plimsoll.asgi import Middleware

    return Middleware(get_asgi_application(), state=STATE)
