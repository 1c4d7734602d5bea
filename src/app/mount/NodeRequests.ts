/** Converts Node's requests and responses to the web standard's, for frameworks that use Node's. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Spoke } from "../../client/Spoke.ts"
import { urlOf } from "../../domain/Address.ts"

/** Node's request, with `body` when a framework has parsed it. */
export type NodeRequest = IncomingMessage & { readonly body?: unknown }

const bodyError = (why: string) =>
  new TypeError(`${why} Mount Spoke before whatever parses bodies of other types than JSON and text.`)

interface Body {
  readonly content: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | string | null
  /** Drops what was not read. Else the next request on the same connection would wait behind it. */
  readonly drop: () => Promise<void>
}

const streamOf = (request: IncomingMessage): Body => {
  // Destroying the request would close the connection before the client has read the response.
  const chunks = request.iterator({ destroyOnReturn: false })
  const drop = async () => {
    await chunks.return?.()
    request.resume()
  }
  const content = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await chunks.next()
      if (done === true) controller.close()
      else controller.enqueue(new Uint8Array(value))
    },
    cancel: drop
  })
  return { content, drop }
}

/** The body that was already read: JSON is encoded again, bytes and text are unchanged. */
const parsedBody = ({ body, headers }: NodeRequest): Uint8Array<ArrayBuffer> | string => {
  if (body === undefined) throw bodyError("The body of the request has already been read.")
  if (typeof body === "string") return body
  if (ArrayBuffer.isView(body)) {
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice()
  }
  if (/^application\/(?:[\w.-]+\+)?json\b/iu.test(headers["content-type"] ?? "")) return JSON.stringify(body)
  throw bodyError("The body of the request has already been parsed.")
}

const headersOf = ({ rawHeaders }: IncomingMessage, isParsed: boolean) => {
  const headers = new Headers()
  for (let place = 0; place + 1 < rawHeaders.length; place += 2) {
    const [name = "", value = ""] = rawHeaders.slice(place, place + 2)
    // Names of HTTP/2 that are no headers.
    if (name.startsWith(":")) continue
    // The parsed body is not compressed and may have another length.
    if (isParsed && /^content-(?:length|encoding)$/iu.test(name)) continue
    if (!/^(?:connection|keep-alive|transfer-encoding|upgrade|expect)$/iu.test(name))
      headers.append(name, value)
  }
  return headers
}

const bodyOf = (request: NodeRequest): Body => {
  const content = (whole: Body["content"]) => ({ content: whole, drop: () => Promise.resolve() })
  if (request.method === "GET" || request.method === "HEAD") return content(null)
  return request.readableDidRead ? content(parsedBody(request)) : streamOf(request)
}

/** The address of a request. A client of a proxy names the whole address, and `OPTIONS *` none. */
const addressOf = ({ headers }: IncomingMessage, path: string) => {
  const authority = headers.host ?? headers[":authority"] ?? "localhost"
  const origin = urlOf(`http://${String(authority)}`)?.origin ?? "http://localhost"
  const { pathname, search } = path.startsWith("/") ? new URL(`${origin}${path}`) : new URL(path, origin)
  return `${origin}${pathname}${search}`
}

/** Methods that a web-standard request refuses. */
const unknownMethods: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"])

const requestOf = (request: NodeRequest, path: string, { content }: Body, signal: AbortSignal) =>
  new Request(addressOf(request, path), {
    method: request.method ?? "GET",
    headers: headersOf(request, request.readableDidRead),
    signal,
    ...(content === null ? {} : { body: content, duplex: "half" })
  })

/** Waits until more can be written, or the client is gone. A closed response has no events any more. */
const waitForDrain = (response: ServerResponse) =>
  new Promise<void>((resolve) => {
    if (response.destroyed) return resolve()
    const done = () => {
      response.off("drain", done).off("close", done)
      resolve()
    }
    response.on("drain", done).on("close", done)
  })

const send = async (answer: Response, response: ServerResponse) => {
  const cookies = answer.headers.getSetCookie()
  answer.headers.forEach((value, name) => {
    if (name !== "set-cookie") response.setHeader(name, value)
  })
  if (cookies.length > 0) response.setHeader("set-cookie", cookies)
  response.writeHead(answer.status)
  response.flushHeaders()
  const reader = answer.body?.getReader()
  for (;;) {
    const read = await reader?.read()
    if (read === undefined || read.done) break
    if (!response.write(read.value)) await waitForDrain(response)
    if (response.destroyed) return void (await reader?.cancel())
  }
  response.end()
}

/**
 * Answers `request` on `response`. `path` is the path without the mount prefix. Rejects before any response when a
 * middleware of the host has consumed the body. A method that cannot be passed on is answered with 501. A stream that
 * fails later ends the connection.
 */
export const answer = async (spoke: Spoke, request: NodeRequest, response: ServerResponse, path: string) => {
  if (unknownMethods.has(request.method?.toUpperCase() ?? "")) {
    request.resume()
    response.writeHead(501, { "content-length": 0 }).end()
    return
  }
  const clientGone = new AbortController()
  // The client may have left before this was called.
  if (response.destroyed) clientGone.abort()
  else response.once("close", () => clientGone.abort())
  const { remoteAddress } = request.socket
  const body = bodyOf(request)
  const result = await spoke.fetch(
    requestOf(request, path, body, clientGone.signal),
    remoteAddress === undefined ? {} : { clientAddress: remoteAddress }
  )
  await send(result, response).catch(() => void response.destroy())
  await body.drop().catch(() => undefined)
}
