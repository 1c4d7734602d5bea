/** All tools of a remote MCP server. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { FairAccount } from "../../concurrency/FairAccount.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { ToolFailure } from "../../domain/agents/ToolFailure.ts"
import { OutboundHttp } from "../OutboundHttp.ts"
import type { AgentTool, SourcedTool, ToolSource } from "../ToolSources.ts"
import * as Exchange from "./Exchange.ts"
import * as McpSession from "./McpSession.ts"

/** Maximum time in milliseconds for which a server's list of tools is cached, and maximum number of cached lists. */
const listTtlMs = 300_000
const maxLists = 256

interface CachedList {
  readonly key: string
  readonly until: number
  readonly list: McpSession.ToolList
  /** The tenant, and its share: all lists count the same. */
  readonly part: string
  readonly amount: 1
}

/** Cached lists. Above the maximum, the oldest list of the tenant with the most lists is removed. */
const makeListCache = () => {
  const lists = new Map<string, CachedList>()
  const account = new FairAccount<CachedList>()
  const remove = (cached: CachedList) => {
    lists.delete(cached.key)
    account.remove(cached)
  }
  const add = (cached: CachedList) => {
    const replaced = lists.get(cached.key)
    if (replaced !== undefined) remove(replaced)
    lists.set(cached.key, cached)
    account.add(cached)
    account.setRevocable(cached, true)
    if (lists.size > maxLists && account.oldest !== undefined) remove(account.oldest)
  }
  return Effect.fn("ToolSources.listed")(function* (
    tenantId: string,
    key: string,
    fetch: Effect.Effect<McpSession.ToolList, ToolFailure>
  ) {
    const now = yield* monotonicMillis
    const cached = lists.get(key)
    if (cached !== undefined && cached.until > now) return cached.list
    const list = yield* fetch
    const until = now + Math.min(listTtlMs, list.ttlMs ?? listTtlMs)
    add({ key, until, list, part: tenantId, amount: 1 })
    return list
  })
}

/** Maximum number of times that a call gets a token with more scopes. */
const maxStepUps = 2

const targetOf = (tool: AgentTool) => (tool._tag === "Configured" ? tool.definition.mcp : undefined)

export const mcpSource: Effect.Effect<ToolSource, never, OutboundHttp> = Effect.map(
  OutboundHttp,
  (http): ToolSource => {
    const cachedList = makeListCache()
    return {
      name: "mcp",
      offered: new Set(),
      has: (tool) => targetOf(tool) !== undefined,
      open: Effect.fn("ToolSources.mcp")(function* (tool, { scope: { tenantId } }) {
        const target = targetOf(tool)
        if (tool._tag === "Named" || target === undefined) return []
        const { definition, id, name, version } = tool
        const { connection } = tool
        const scope = yield* Effect.scope
        /** A session with the server, for the turn. */
        const openServer = Effect.fn("ToolSources.mcp.opened")(function* (credential: string) {
          const server = {
            url: target.url,
            headers: Exchange.headersFor(definition, credential),
            hasTokens: connection !== undefined
          }
          const session = yield* McpSession.open(http, server, definition.timeout)
          // The list may depend on the caller, so it is not shared between callers.
          const caller = createHash("sha256").update(credential).digest("hex")
          return {
            credential,
            session,
            list: cachedList(tenantId, `${id} ${version} ${caller}`, session.list)
          }
        }, Scope.extend(scope))
        let current = yield* openServer(yield* tool.credential)
        type Ask<A> = (server: typeof current) => Effect.Effect<A, ToolFailure>
        /** Asks with the scopes that the server demands, each time that it demands more. */
        const withScopes = <A>(
          ask: Ask<A>,
          usedServer: typeof current,
          stepUpsLeft: number
        ): Effect.Effect<A, ToolFailure> =>
          Effect.catchIf(
            ask(usedServer),
            ({ code }) => code === "TOOL_SCOPE_REQUIRED",
            Effect.fn("ToolSources.mcp.widen")(function* ({ scopes = [], ...failure }) {
              if (connection === undefined || stepUpsLeft === 0) return yield* Effect.fail(failure)
              const token = yield* connection.widened(usedServer.credential, scopes)
              if (current.credential !== token) current = yield* openServer(token)
              return yield* withScopes(ask, current, stepUpsLeft - 1)
            })
          )
        /** Asks, and once more with a new token if the server does not accept the current one. */
        const withRenewal = <A>(once: Ask<A>) => {
          const usedServer = current
          const ask: Ask<A> = (server) => withScopes(once, server, maxStepUps)
          return ask(usedServer).pipe(
            Effect.catchIf(
              ({ code }) => connection !== undefined && code === "TOOL_CONNECTION_REQUIRED",
              Effect.fn("ToolSources.mcp.renewed")(function* (failure) {
                if (connection === undefined) return yield* Effect.fail(failure)
                const token = yield* connection.renew(usedServer.credential)
                if (current.credential !== token) current = yield* openServer(token)
                return yield* Effect.catchIf(
                  ask(current),
                  ({ code }) => code === "TOOL_CONNECTION_REQUIRED",
                  () => Effect.flatMap(connection.refused(token), Effect.fail)
                )
              })
            )
          )
        }
        const { isStateless, tools } = yield* withRenewal(({ list }) => list)
        return tools.map((one): SourcedTool => ({
          declaration: {
            name: `${name}_${one.name}`,
            description: one.description,
            parameters: { ...one.inputSchema, type: "object" }
          },
          timeoutMillis: definition.timeout * 1_000,
          call: (input) => withRenewal(({ session }) => session.call(isStateless, one, input))
        }))
      })
    }
  }
)
