/** A web site on the loopback interface, described by what each path answers, and a record of what was asked. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import { layerMemory } from "../../src/capabilities/ArtifactStore.ts"
import { layerInline } from "../../src/capabilities/DocumentParser/Inline.ts"
import { layerExtractive } from "../../src/capabilities/ModelRuntime/extractive/Extractive.ts"
import { parseAllowList } from "../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../src/capabilities/OutboundHttp/Undici.ts"
import { layerTesseract } from "../../src/capabilities/TextRecognition/Tesseract.ts"

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Milliseconds until it comes; the site's own delay unless told. */
  readonly delay?: number
}

/** A page whose words are its own, with links to others. */
export const page = (title: string, links: ReadonlyArray<string> = [], head = ""): Answer => ({
  headers: { "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html><html><head><title>${title}</title>${head}</head><body><main><h1>${title}</h1>
    <p>These are the words of the page called ${title}, and they are long enough to be read.</p>
    ${links.map((href) => `<a href="${href}">link</a>`).join(" ")}</main></body></html>`
})

export interface Site {
  readonly origin: string
  /** Paths with queries in the order in which they were asked for. */
  readonly asked: ReadonlyArray<string>
  /** Most requests that were open at the same time. */
  readonly maxOpen: () => number
  /** Bytes of all bodies so far. */
  readonly sent: () => number
}

/** Serves until the scope closes. What is not described answers 404; a page answers after `delay` milliseconds. */
export const serveSite = (
  describe: (
    origin: string
  ) =>
    | Readonly<Record<string, Answer>>
    | ((path: string, headers: Http.IncomingHttpHeaders) => Answer | undefined),
  delay = 0
): Effect.Effect<Site, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly site: Site; readonly server: Http.Server }>((resume) => {
      const asked: Array<string> = []
      let open = 0
      let maxOpen = 0
      let sent = 0
      let origin = ""
      const server = Http.createServer((request, response) => {
        const path = request.url ?? "/"
        asked.push(path)
        maxOpen = Math.max(maxOpen, ++open)
        const described = describe(origin)
        const answer = typeof described === "function" ? described(path, request.headers) : described[path]
        setTimeout(() => {
          open--
          sent += answer?.body?.length ?? 0
          response.writeHead(answer === undefined ? 404 : (answer.status ?? 200), answer?.headers ?? {})
          response.end(answer?.body ?? "")
        }, answer?.delay ?? delay)
      })
      server.listen(0, "127.0.0.1", () => {
        const bound = server.address()
        origin = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`
        resume(Effect.succeed({ server, site: { origin, asked, maxOpen: () => maxOpen, sent: () => sent } }))
      })
    }),
    ({ server }) =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  ).pipe(Effect.map(({ site }) => site))

/** The services of readers: the real way out, allowed to reach the loopback interface, a parser in this thread, no model. */
export const layerReaders = Layer.mergeAll(
  layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1")) }),
  layerInline(),
  layerTesseract({ script: new URL("../../dist/workers/recognize.js", import.meta.url) }),
  layerExtractive,
  layerMemory
)
