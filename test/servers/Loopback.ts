/** HTTP servers of tests, on a free port of the loopback interface. */
import * as Effect from "effect/Effect"
import * as Http from "node:http"

export interface Served {
  /** Without a slash at its end. */
  readonly url: string
  readonly close: () => void
}

/** Begins a server that answers with `handler`. */
export const serve = (handler: Http.RequestListener) =>
  new Promise<Served>((resolve) => {
    const server = Http.createServer(handler)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resolve({ url: `http://127.0.0.1:${port}`, close: () => void server.close().closeAllConnections() })
    })
  })

/** The address of such a server, for as long as the scope is open. */
export const serveScoped = (handler: Http.RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(() => serve(handler)),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ url }) => url))

/** A site whose pages are what `html` returns. */
export const servePages = (html: () => string) =>
  serve((_, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    response.end(html())
  })
