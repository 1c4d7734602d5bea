/** The test cases that are stored with an agent, read over the management interface. */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { parse } from "../../../domain/agents/TestCaseFile.ts"
import * as Connection from "../Connection.ts"
import { badInput } from "./Cases.ts"

const Agents = Schema.Struct({
  agents: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String })),
  nextCursor: Schema.NullOr(Schema.String)
})
type Server = Effect.Effect.Success<ReturnType<typeof Connection.manage>>

/** The agent with this id, else the only one with this name. */
const findAgent = (server: Server, name: string) =>
  Effect.gen(function* () {
    const pages = yield* Stream.runCollect(server.pages(Agents, "/agents"))
    const agents = Array.from(pages).flatMap((page) => page.agents)
    const byId = agents.find(({ id }) => id === name)
    const [first, second] = byId === undefined ? agents.filter((agent) => agent.name === name) : [byId]
    if (first === undefined) return yield* badInput(`There is no agent ${name}.`)
    if (second !== undefined)
      return yield* badInput(`Several agents are called ${name}: give --agent the id of one.`)
    return first
  })

/** The stored cases of the agent `name`, which must be the agent of the key. */
export const read = (flags: Connection.Flags & Connection.ManageFlags, name: string) =>
  Effect.gen(function* () {
    const server = yield* Connection.manage(flags)
    const agent = yield* findAgent(server, name)
    const response = yield* server.send(HttpClientRequest.get(`/agents/${agent.id}/cases/export`))
    const text = yield* Effect.mapError(response.text, Connection.unexpected)
    if (text === "") return yield* badInput(`${agent.name} has no test cases.`)
    const keyAgent = yield* Effect.flatMap(Connection.connect(flags), Connection.agentOf)
    if (keyAgent !== agent.id) return yield* badInput(`The key belongs to another agent than ${agent.name}.`)
    return yield* Either.match(parse(text, "jsonl"), {
      onLeft: () => Effect.fail(Connection.unexpected()),
      onRight: Effect.succeed
    })
  })
