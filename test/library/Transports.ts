/** One service and the ways to call it, each with the same methods. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { fromRecord } from "../../src/app/config/Config.ts"
import * as Embedded from "../../src/app/library/Embedded.ts"
import * as Http from "../../src/app/Http.ts"
import { createSpoke } from "../../src/app/library/Library.ts"
import type { AgentClient } from "../../src/client/AgentClient.ts"
import { makeClient } from "../../src/client.ts"
import * as OwnerClient from "../../src/client/OwnerClient.ts"
import type { StreamPart } from "../../src/domain/chat/StreamPart.ts"
import * as Transport from "../../src/client/Transport.ts"
import type { FailureBody } from "../../src/http/Envelope.ts"
import { listen } from "../../src/http/server/Server.ts"
import { type Script, makeScript } from "./Script.ts"
import { freePort } from "../servers/FreePort.ts"

/** The methods that every transport has for the suite: those of the library and of the typed client. */
export interface Calls extends Pick<AgentClient, "chat" | "stream" | "retrieve" | "usage"> {
  readonly sources: Pick<
    AgentClient["sources"],
    "upload" | "ready" | "get" | "list" | "update" | "sync" | "delete"
  >
  readonly conversations: Pick<AgentClient["conversations"], "get" | "list">
  readonly runs: Pick<AgentClient["runs"], "get" | "stop" | "follow">
}

interface Unread {
  readonly runId: string
  /** All of its parts. */
  readonly read: () => Promise<ReadonlyArray<StreamPart>>
}

/** A service, opened, with an agent that answers by {@link Script}. */
export interface System {
  readonly calls: Calls
  readonly script: Script
  /** Begins a streamed turn without reading it. */
  readonly unread: (message: string) => Promise<Unread>
  /** Shuts the service down, as its host or operator does. */
  readonly close: () => Promise<void>
}

const folder = () => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-transports-"))

const all = async (parts: AsyncIterable<StreamPart>) => {
  const found: Array<StreamPart> = []
  for await (const part of parts) found.push(part)
  return found
}

/** A stream that is read only until its run's id is known. */
const begun =
  ({ stream }: Calls) =>
  async (message: string): Promise<Unread> => {
    const parts = stream({ message })[Symbol.asyncIterator]()
    const seen: Array<StreamPart> = []
    let runId: string | undefined
    while (runId === undefined) {
      const { done, value } = await parts.next()
      if (done === true) throw new Error("The stream names no run.")
      seen.push(value)
      if (value.type === "data-agent-run-event") runId = value.data.runId
    }
    const whole = async function* () {
      yield* seen
      for (let next = await parts.next(); next.done !== true; next = await parts.next()) yield next.value
    }
    return { runId, read: () => all(whole()) }
  }

/** Plain `fetch` requests, without our client. */
const byHand = (
  send: (request: Request) => Promise<Response>,
  origin: string,
  key: string
): Pick<System, "calls" | "unread"> => {
  const ask = async (method: string, path: string, body: unknown, signal: AbortSignal | undefined) => {
    const form = body instanceof FormData
    const response = await send(
      new Request(`${origin}${path}`, {
        method,
        headers: { "x-api-key": key, ...(form ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal })
      })
    )
    // A handler's answer to a client that has disconnected.
    if (response.status === 499) throw signal?.reason
    if (response.ok) return response
    const { error, meta } = (await response.json()) as FailureBody
    throw Object.assign(new Error(error.message), {
      code: error.code,
      details: error.details,
      status: response.status,
      requestId: meta.requestId
    })
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- each method says what it is
  const data = async (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<any> => {
    const answer = (await (await ask(method, path, body, signal)).json()) as { readonly data: unknown }
    return answer.data
  }
  async function* partsOf(response: Response) {
    const decoder = new TextDecoder()
    let rest = ""
    for await (const bytes of response.body ?? []) {
      const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n")
      rest = frames.pop() ?? ""
      for (const frame of frames) {
        if (frame === "data: [DONE]") return
        if (!frame.startsWith("data: ")) continue
        const part: StreamPart = JSON.parse(frame.slice("data: ".length))
        yield part
      }
    }
    throw new Error("The stream ended early.")
  }
  async function* parts(method: string, path: string, body?: unknown, signal?: AbortSignal) {
    yield* partsOf(await ask(method, path, body, signal))
  }
  const get = (id: string) => data("GET", `/v1/sources/${id}`)
  const calls: Calls = {
    chat: (request: unknown, options?: { readonly signal?: AbortSignal | undefined }) =>
      data("POST", "/v1/chat", request, options?.signal),
    stream: (request, options) => parts("POST", "/v1/chat/stream", request, options?.signal),
    retrieve: (request, options) => data("POST", "/v1/retrieve", request, options?.signal),
    usage: (options) => data("GET", "/v1/usage", undefined, options?.signal),
    sources: {
      upload: ({ file, fileName, name }) => {
        const form = new FormData()
        form.set("file", file instanceof Blob ? file : new Blob([file]), fileName ?? "document")
        if (name !== undefined) form.set("name", name)
        return data("POST", "/v1/sources/upload", form)
      },
      ready: async (id) => {
        for (;;) {
          const source = await get(id)
          if (source.status === "READY" && source.latestJob?.status === "SUCCEEDED") return source
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      },
      get,
      list: () => data("GET", "/v1/sources"),
      update: (id, changes) => data("PATCH", `/v1/sources/${id}`, changes),
      sync: (id) => data("POST", `/v1/sources/${id}/sync`, {}),
      delete: (id) => data("DELETE", `/v1/sources/${id}`)
    },
    conversations: {
      get: (id) => data("GET", `/v1/conversations/${id}`),
      list: ({ endUserId } = {}) =>
        data("GET", `/v1/conversations${endUserId === undefined ? "" : `?endUserId=${endUserId}`}`)
    },
    runs: {
      get: (id) => data("GET", `/v1/agent-runs/${id}`),
      stop: (id) => data("POST", `/v1/agent-runs/${id}/stop`),
      follow: (id) => parts("GET", `/v1/chat/stream/${id}`)
    }
  }
  /** A response whose body is not touched. */
  const unread: System["unread"] = async (message) => {
    const response = await ask("POST", "/v1/chat/stream", { message }, undefined)
    return { runId: response.headers.get("x-run-id") ?? "", read: () => all(partsOf(response)) }
  }
  return { calls, unread }
}

/** A short turn time-out, for turns that are not read. */
const env = { SPOKE_TURN_TIMEOUT: "20 seconds" }

/** The embedded library, called by its methods. */
const openLibrary = async (given: Readonly<Record<string, string>> = {}) => {
  const dataDir = folder()
  const script = makeScript()
  const spoke = await createSpoke({ dataDir, env: { ...env, ...given } }, { replace: script.layer })
  const agent = spoke.agent((await spoke.agents.create({ name: "Tea guide" })).id)
  const close = async () => {
    await spoke.close()
    Fs.rmSync(dataDir, { recursive: true, force: true })
  }
  return { spoke, agent, script, close }
}

/** The same service behind a listener, as `spoke serve` wires it. */
const openServer = async (given: Readonly<Record<string, string>> = {}) => {
  const dataDir = folder()
  const script = makeScript()
  const port = await freePort()
  const scope = Effect.runSync(Scope.make())
  const key = await Effect.gen(function* () {
    const settings = yield* fromRecord(
      { SPOKE_DATA_DIR: dataDir, PORT: String(port), ...env, ...given },
      false
    )
    const live = yield* Layer.build(Embedded.layer(settings, { replace: script.layer }))
    const { own } = yield* Embedded.open(settings, {}, Layer.succeedContext(live))
    const owner = OwnerClient.make(Transport.make("http://spoke.test", (request) => own(request, null)))
    const { id } = yield* Effect.promise(() => owner.agents.create({ name: "Tea guide" }))
    const { secret } = yield* Effect.promise(() =>
      owner.keysOf(id).create({ name: "Test", permissions: ["*"] })
    )
    yield* Layer.build(
      Http.layer(settings).pipe(
        Layer.provide(
          listen({ host: "127.0.0.1", port, grace: "5 seconds" }).pipe(Layer.provide(Http.overload(settings)))
        ),
        Layer.provide(Layer.succeedContext(live))
      )
    )
    return secret
  }).pipe(Scope.extend(scope), Effect.runPromise)
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    Fs.rmSync(dataDir, { recursive: true, force: true })
  }
  return { key, url: `http://127.0.0.1:${port}`, script, close }
}

type Open = (env?: Readonly<Record<string, string>>) => Promise<System>

const library: Open = async (given) => {
  const { agent, close, script } = await openLibrary(given)
  return { calls: agent, script, unread: begun(agent), close }
}

const handler: Open = async (given) => {
  const { agent, close, script, spoke } = await openLibrary(given)
  const { secret } = await agent.keys.create({ name: "Test", permissions: ["*"] })
  return { ...byHand((request) => spoke.fetch(request), "http://spoke.test", secret), script, close }
}

const http: Open = async (given) => {
  const { close, key, script, url } = await openServer(given)
  return { ...byHand((request) => fetch(request), url, key), script, close }
}

const client: Open = async (given) => {
  const { close, key, script, url } = await openServer(given)
  const calls = makeClient({ baseUrl: url, apiKey: key })
  return { calls, script, unread: begun(calls), close }
}

export const transports: ReadonlyArray<{ readonly name: string; readonly open: Open }> = [
  { name: "the library", open: library },
  { name: "spoke.fetch", open: handler },
  { name: "HTTP", open: http },
  { name: "spoke/client", open: client }
]
