/** Opens the service of a data folder in this process, for questions without a running server. */
import * as fs from "node:fs"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { AgentPage } from "../../../http/hosted/agents/AgentsApi.ts"
import { fromEnvironment } from "../../config/Config.ts"
import * as Embedded from "../../library/Embedded.ts"
import { CommandFailed } from "../Connection.ts"
import type { Send } from "./Ask.ts"
import { badInput } from "./Cases.ts"

/** Variables of another database, which do not apply to a folder. Empty counts as unset. */
const unset = {
  DATABASE_URL: "",
  DATABASE_URL_FILE: "",
  SPOKE_DATABASE_DIRECT_URL: "",
  SPOKE_DATABASE_DIRECT_URL_FILE: "",
  REDIS_URL: "",
  REDIS_URL_FILE: "",
  SPOKE_VECTOR: ""
}

const origin = "http://spoke.internal"

const decodeAgents = Schema.decodeUnknown(Schema.Struct({ data: AgentPage }))

/** The only agent. Fails when there are several, because the user has to choose. */
const onlyAgent = (service: Embedded.Embedded) =>
  Effect.gen(function* () {
    const { agents } = yield* Effect.promise(async () => {
      const response = await service.own(new Request(`${origin}/api/agents?limit=100`), null)
      return response.json()
    }).pipe(
      Effect.flatMap(decodeAgents),
      Effect.map(({ data }) => data),
      Effect.orDie
    )
    const [first, ...others] = agents
    if (first === undefined) return yield* badInput("The data folder has no agent.")
    if (others.length === 0) return first.id
    const named = agents.map(({ id, name }) => `  ${id}  ${name}`).join("\n")
    return yield* badInput(`The data folder has several agents; choose one with --agent:\n${named}`)
  })

/**
 * Opens the embedded database of `folder` until the scope closes, with the model provider of the environment. Without
 * workers and listener.
 */
export const open = (folder: string, agentId: string | undefined) =>
  Effect.gen(function* () {
    if (!fs.existsSync(folder)) return yield* badInput(`${folder} is no data folder.`)
    const settings = yield* fromEnvironment({ ...unset, SPOKE_DATA_DIR: folder })
    const service = yield* Embedded.open(settings, { workers: false }, Embedded.layer(settings))
    const agent = yield* agentId === undefined ? onlyAgent(service) : service.agent(agentId)
    const client = yield* HttpClient.HttpClient
    const fetch: typeof globalThis.fetch = (input, init) => service.own(new Request(input, init), agent)
    const send: Send = (request) =>
      client.execute(HttpClientRequest.prependUrl(request, `${origin}/v1`)).pipe(
        Effect.provideService(FetchHttpClient.Fetch, fetch),
        Effect.mapError(() => new CommandFailed({ message: "The service in this process has stopped." }))
      )
    return send
  }).pipe(
    Effect.provide(Logger.remove(Logger.defaultLogger)),
    Effect.catchTag("NOT_FOUND", () => badInput(`${agentId} is no agent of ${folder}.`))
  )
