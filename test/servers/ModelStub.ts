/**
 * An OpenAI-compatible provider for tests, on a free port of the loopback address: `/chat/completions` and `/responses`
 * streamed and whole, `/embeddings`, and every way in which such a provider fails. Answers are scripted, one a request;
 * when the script has run out, `otherwise` answers.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { embeddings, type Frames, interfaces, type StubReply, tokensOf } from "./ModelStubWire.ts"

export type StubAnswer =
  | StubReply
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Bytes as they are, with status 200, in the given pieces. */
  | { readonly raw: ReadonlyArray<string | Uint8Array>; readonly contentType?: string }
  /** Never an answer, or a reset before the first byte. */
  | { readonly silent: "hang" | "reset" }

export interface StubRequest {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  // What it holds differs for each path; assertions look at what they need.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  /** The client's port: requests over one connection share it. */
  readonly port: number
  /** True once the client had left before the answer was complete. */
  readonly aborted: () => boolean
  /** Resolves when the exchange is over, with `aborted()`. */
  readonly over: Promise<boolean>
}

export interface ModelStub {
  /** With `/v1`, as OPENAI_BASE_URL takes it. */
  readonly url: string
  readonly requests: Array<StubRequest>
  /** Answers still to give, first to first request. */
  readonly script: Array<StubAnswer>
  otherwise: StubAnswer
  /** Dimensions of embeddings where the request names none. */
  dimensions: number
  /** Forgets requests and script, and whatever else was set. */
  readonly reset: () => void
  /** Resolves with the request of this place (from 0) once it has come. */
  readonly request: (place: number) => Promise<StubRequest>
}

const dimensions = 1_536
const plain: StubAnswer = { text: "The stub says hello." }

const json = (response: ServerResponse, status: number, body: unknown, headers = {}) => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}

const errorBody = (status: number) => ({
  error: { message: `Injected failure ${status}, key sk-…`, type: "stub", code: "injected", param: null }
})

const breakFrame = { garbage: 'data: {"broken": \n\n', shape: "data: [1, 2]\n\n" } as const

/** Sends frames one by one, up to the place where the script breaks the answer off. */
const send = async (response: ServerResponse, reply: StubReply, frames: Frames): Promise<void> => {
  const write = async (frame: string) => {
    response.write(frame)
    // Each frame leaves on its own, so that the client has read it when the next one is written.
    await new Promise<void>((resolve) => {
      if (reply.gap === undefined) setImmediate(resolve)
      else setTimeout(resolve, reply.gap)
    })
  }
  const breakable = tokensOf(reply.text ?? "").length || frames.middle.length
  const half = reply.breaks === undefined ? frames.middle.length : Math.ceil(breakable / 2)
  for (const frame of [...frames.begin, ...frames.middle.slice(0, half)]) {
    if (response.destroyed) return
    await write(frame)
  }
  if (reply.breaks === "hang") return
  if (reply.breaks === "reset") {
    // What was written must be on its way: a reset drops what is still in the buffers.
    setTimeout(() => response.socket?.resetAndDestroy(), 20)
    return
  }
  if (reply.breaks === "cut") response.end()
  else if (reply.breaks === "error") response.end(frames.error)
  else if (reply.breaks !== undefined) await write(breakFrame[reply.breaks])
  await reply.pause
  for (const frame of [...frames.middle.slice(half), ...frames.end]) {
    if (response.writableEnded || response.destroyed) return
    await write(frame)
  }
  if (!response.writableEnded) response.end()
}

/** Azure's dated interface has the deployment in its address, and speaks as the other one. */
const wireOf = (path: string) => {
  if (path === "/responses" || path === "/chat/completions" || path === "/messages") return interfaces[path]
  const azure = /^\/deployments\/[^/?]+\/chat\/completions\?api-version=/u
  return azure.test(path) ? interfaces["/chat/completions"] : null
}

const respond = async (
  stub: ModelStub,
  request: IncomingMessage,
  response: ServerResponse,
  record: StubRequest
) => {
  const answer = stub.script.shift() ?? stub.otherwise
  if ("silent" in answer) {
    if (answer.silent === "reset") request.socket.resetAndDestroy()
    return
  }
  if ("status" in answer) {
    return json(response, answer.status, answer.body ?? errorBody(answer.status), answer.headers)
  }
  if ("raw" in answer) {
    response.writeHead(200, { "content-type": answer.contentType ?? "text/event-stream; charset=utf-8" })
    for (const piece of answer.raw) {
      response.write(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return response.end()
  }
  if (record.path === "/embeddings") return json(response, 200, embeddings(record.body, stub.dimensions))
  const wire = wireOf(record.path)
  if (wire === null) return json(response, 404, errorBody(404))
  if (record.body.stream !== true) return json(response, 200, wire.whole(answer))
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
  await send(response, answer, wire.frames(answer))
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Keeps what a request was, and whether its client waited for the end. */
const recordOf = (request: IncomingMessage, response: ServerResponse, body: string): StubRequest => {
  let aborted = false
  const over = new Promise<boolean>((resolve) => {
    response.once("close", () => {
      aborted = !response.writableFinished
      resolve(aborted)
    })
  })
  return {
    path: (request.url ?? "").replace(/^\/v1/, ""),
    headers: request.headers,
    port: request.socket.remotePort ?? 0,
    body: body === "" ? null : JSON.parse(body),
    aborted: () => aborted,
    over
  }
}

const listening = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (typeof address === "object" && address !== null) resolve(address.port)
    })
  })

const start = async (): Promise<{ readonly stub: ModelStub; readonly server: Server }> => {
  const waiting = new Set<() => void>()
  const requests: Array<StubRequest> = []
  const script: Array<StubAnswer> = []
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    response.on("error", () => undefined)
    void bodyOf(request).then((body) => {
      const record = recordOf(request, response, body)
      requests.push(record)
      for (const wake of waiting) wake()
      return respond(stub, request, response, record)
    })
  })
  const stub: ModelStub = {
    url: `http://127.0.0.1:${await listening(server)}/v1`,
    requests,
    script,
    otherwise: plain,
    dimensions,
    reset: () => {
      requests.length = 0
      script.length = 0
      stub.otherwise = plain
      stub.dimensions = dimensions
    },
    request: (place) =>
      new Promise((resolve) => {
        const look = () => {
          const found = requests[place]
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      })
  }
  return { stub, server }
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

/** A stub that lives as long as the scope. */
export const make: Effect.Effect<ModelStub, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(Effect.promise(start), ({ server }) => Effect.promise(() => close(server))),
  ({ stub }) => stub
)
