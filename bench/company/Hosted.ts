/** A complete Spoke in this process, called over its routes as by the dashboard, a program and a customer. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Layer from "effect/Layer"
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Embedder } from "../../src/capabilities/Embedder.ts"
import type { ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import type { TextRecognition } from "../../src/capabilities/TextRecognition.ts"
import { createSpoke } from "../../src/app/library/Library.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- callers look into it field by field
type Json = any

export interface Reply {
  readonly status: number
  readonly data: Json
  readonly error: Json
}

const origin = "http://127.0.0.1:3000"

/** Uses extracts, unless a model is given. */
export const makeHosted = async (
  embedder: Layer.Layer<Embedder, never, SqlClient.SqlClient>,
  model?: Layer.Layer<ModelRuntime | TextRecognition> | Layer.Layer<ModelRuntime>,
  settings: { readonly fetchAllow?: ReadonlyArray<string> } = {}
) => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-hosted-"))
  const spoke = await createSpoke(
    {
      ...settings,
      dataDir: folder,
      admin: { email: "owner@example.com", password: "correct horse battery" }
    },
    { replace: model === undefined ? embedder : Layer.merge(embedder, model) }
  )
  const send = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const request = new Request(`${origin}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return spoke.fetch(request, { clientAddress: "192.0.2.1" })
  }
  const read = async (response: Response): Promise<Reply> => {
    const { data, error }: Json = JSON.parse(await response.text())
    return { status: response.status, data, error }
  }
  const login = await send(
    "POST",
    "/api/auth/login",
    { origin },
    {
      email: "owner@example.com",
      password: "correct horse battery"
    }
  )
  const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  /** As the owner. */
  const ask = async (method: string, path: string, body?: unknown) =>
    read(await send(method, path, { cookie, origin }, body))
  const good = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const { data, error, status } = await ask(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path} is ${status}: ${JSON.stringify(error)}`)
    return data
  }
  /** What a page downloads. */
  const text = async (path: string): Promise<string> => {
    const response = await send("GET", path, { cookie, origin })
    if (!response.ok) throw new Error(`GET ${path} is ${response.status}`)
    return response.text()
  }
  const until = async (
    path: string,
    isDone: (data: Json) => boolean,
    get = (of: string): Promise<Json> => good("GET", of)
  ): Promise<Json> => {
    for (;;) {
      const data = await get(path)
      if (isDone(data)) return data
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  /** An agent and the questions of its customers. */
  const agent = async (fields: object = {}) => {
    const made = await good("POST", "/api/agents", { name: "Helper", ...fields })
    const id: string = made.agent.id
    const { secret } = await good("POST", `/api/agents/${id}/keys`, { name: "Test", permissions: ["*"] })
    /** A turn with this request. */
    const ask = async (body: object, headers: Record<string, string> = {}): Promise<Json> => {
      const answered = await read(await send("POST", "/v1/chat", { ...headers, "x-api-key": secret }, body))
      if (answered.error !== undefined) throw new Error(JSON.stringify(answered.error))
      return answered.data
    }
    const chat = (message: string, person = "ada") => ask({ message, externalEndUserId: person })
    /** A source that has been read. */
    const source = async (type: string, name: string, config: object): Promise<string> => {
      const { source: added } = await good("POST", "/api/sources", { agentId: id, type, name, config })
      await ready(added.id)
      return added.id
    }
    /** A file that has been read. */
    const file = async (name: string, text: string): Promise<string> => {
      const body = new FormData()
      body.set("file", new Blob([text]), name)
      const headers = { "x-api-key": secret }
      const request = new Request(`${origin}/v1/sources/upload`, { method: "POST", headers, body })
      const { data } = await read(await spoke.fetch(request, { clientAddress: "192.0.2.1" }))
      await ready(data.source.id)
      return data.source.id
    }
    /** Queues the source, to be read again completely. */
    const sync = async (source: string): Promise<void> => {
      await send("POST", `/v1/sources/${source}/sync`, { "x-api-key": secret }, { force: true })
    }
    /** Until the source failed or its passages have their vectors, so that later searches find the same. */
    const ready = async (source: string) => {
      await until(`/api/sources/${source}`, ({ latestJob, status }) =>
        status === "FAILED" ? true : status === "READY" && latestJob?.status === "SUCCEEDED"
      )
      await until(
        `/v1/sources/${source}/embedding`,
        ({ chunks, embedded }) => chunks === embedded,
        async (path) => (await read(await send("GET", path, { "x-api-key": secret }))).data
      )
    }
    const ended = (experiment: string) =>
      until(`/api/experiments/${experiment}`, ({ experiment: { status } }) => !/queued|running/u.test(status))
    return { id, path: `/api/agents/${id}`, ask, chat, source, file, sync, ready, ended }
  }
  /** Stops the service, so that another process may use its folder. */
  const stop = () => spoke.close()
  const close = async () => {
    await stop()
    Fs.rmSync(folder, { recursive: true, force: true })
  }
  return { folder, ask, good, text, agent, stop, close }
}

export type Hosted = Awaited<ReturnType<typeof makeHosted>>
