/**
 * The files of dashboard, widget and documentation. `/` and everything below `/app/` is the dashboard's page, which
 * routes by the address. `/widget.js` is the chat for any page, and `/widget-markdown.js` is loaded when it is opened.
 * `/docs` is the reference of the API, and everything below `/docs/guide` the pages of `docs/`. None of them has the
 * envelope.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { NotFound } from "../../../domain/Errors.ts"
import { acceptsCoding } from "../../ContentCoding.ts"

const contentTypes: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  svg: "image/svg+xml",
  woff2: "font/woff2"
}

/** A file name as the build writes it. It cannot lead out of the folder. */
const namePattern = /^[\w-]+(?:\.[\w-]+)*\.(css|js|svg|woff2)$/

/** The best first: as the build has compressed its text files. */
const encodings = [
  { name: "br", extension: ".br" },
  { name: "gzip", extension: ".gz" }
] as const

const pagePolicy = (realtimeOrigin: string) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; ` +
  `connect-src 'self' ${realtimeOrigin}; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`

/** A page of the documentation's name in its address. */
const guidePattern = /^[\w-]+$/

/** Requests of the reference go to this server only. */
const docsPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The page on which the dashboard previews the widget, with the same script as on any page. */
const preview = HttpServerResponse.text(
  '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">' +
    '<meta name="color-scheme" content="light dark"><title>Spoke</title><body>' +
    '<script src="/widget.js" data-preview data-open></script></body></html>',
  {
    contentType: "text/html; charset=utf-8",
    headers: {
      "cache-control": "no-cache",
      "content-security-policy":
        "default-src 'none'; script-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    }
  }
)

/** Shown between the first start and the end of the build, which runs at the same time. */
const building = HttpServerResponse.text(
  '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Spoke</title>' +
    "<p>The page is being built. It reloads by itself.</p></html>",
  {
    status: 503,
    contentType: "text/html; charset=utf-8",
    headers: { "cache-control": "no-store", "retry-after": "2" }
  }
)

/** By pattern of a path below /app, the files and the data of its page: written by the build. */
const Pages = Schema.parseJson(
  Schema.Array(
    Schema.Struct({
      pattern: Schema.String,
      files: Schema.Array(Schema.String),
      data: Schema.Array(Schema.String)
    })
  )
)
const decodePages = Schema.decodeUnknown(Pages)

/**
 * The header `link` of the page at `url`: the browser requests files and data at once, not after the code that names
 * them.
 */
const linksOf = (pages: typeof Pages.Type, url: string): string => {
  const path = /^\/app(\/[^?]*)/.exec(url)?.[1] ?? "/"
  const page = pages.find(({ pattern }) => new RegExp(pattern, "u").test(path))
  const files = (page?.files ?? []).map((name) =>
    name.endsWith(".css")
      ? `</assets/${name}>; rel=preload; as=style; crossorigin`
      : `</assets/${name}>; rel=modulepreload; crossorigin`
  )
  const data = (page?.data ?? []).map((address) => `<${address}>; rel=preload; as=fetch; crossorigin`)
  return [...files, ...data].join(", ")
}

const notFound = Effect.fail(new NotFound({ message: "There is nothing at this address." }))

/** Adds the routes. `folder` has the build's output; `realtimeUrl` is the address of the dashboard's socket. */
export const layer = (folder: string, realtimeUrl: string): Layer.Layer<never> =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const policy = pagePolicy(new URL(realtimeUrl).origin)

      /** The file, compressed if the client accepts that; none when the build has no such file. */
      const file = (name: string, headers: Readonly<Record<string, string>>) =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const request = yield* HttpServerRequest.HttpServerRequest
          const path = `${folder}/${name}`
          const accepted = request.headers["accept-encoding"]
          const compressed = yield* Effect.findFirst(
            encodings.filter(({ name }) => acceptsCoding(accepted, name)),
            ({ extension }) => fs.exists(`${path}${extension}`)
          )
          const { extension, name: encoding } = Option.getOrElse(compressed, () => ({
            extension: "",
            name: null
          }))
          const bytes = yield* fs.readFile(`${path}${extension}`)
          return HttpServerResponse.uint8Array(bytes, {
            contentType: contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
            headers: {
              ...headers,
              vary: "accept-encoding",
              ...(encoding === null ? {} : { "content-encoding": encoding })
            }
          })
        })

      const page = Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const request = yield* HttpServerRequest.HttpServerRequest
        const pages = yield* Effect.flatMap(fs.readFileString(`${folder}/pages.json`), decodePages)
        const link = linksOf(pages, request.url)
        return yield* file("index.html", {
          "cache-control": "no-cache",
          "content-security-policy": policy,
          ...(link === "" ? {} : { link })
        })
      }).pipe(Effect.orElseSucceed(() => building))

      // Names contain a hash of the content.
      const asset = Effect.flatMap(HttpRouter.params, ({ name = "" }) =>
        namePattern.test(name)
          ? Effect.catchAll(
              file(name, { "cache-control": "public, max-age=31536000, immutable" }),
              () => notFound
            )
          : notFound
      )

      const widgetScript = (name: string) =>
        file(name, {
          "cache-control": "public, max-age=300",
          "cross-origin-resource-policy": "cross-origin"
        }).pipe(Effect.catchAll(() => notFound))

      const docs = (name: string) =>
        file(name, { "cache-control": "public, max-age=300", "content-security-policy": docsPolicy })

      const guide = Effect.flatMap(HttpRouter.params, ({ name = "" }) =>
        guidePattern.test(name) ? Effect.catchAll(docs(`guide-${name}.html`), () => notFound) : notFound
      )

      yield* router.get(
        "/docs",
        Effect.catchAll(docs("docs.html"), () => Effect.succeed(building))
      )
      yield* router.get(
        "/docs/guide",
        Effect.catchAll(docs("guide-README.html"), () => Effect.succeed(building))
      )
      yield* router.get("/docs/guide/:name", guide)
      yield* router.get(
        "/docs/search.json",
        Effect.catchAll(docs("docs-search.json"), () => notFound)
      )
      yield* router.get("/", page)
      yield* router.get("/app", page)
      yield* router.get("/app/*", page)
      yield* router.get("/assets/:name", asset)
      yield* router.get("/widget.js", widgetScript("widget.js"))
      yield* router.get("/widget-preview", preview)
      yield* router.get("/widget-markdown.js", widgetScript("widget-markdown.js"))
    })
  )
