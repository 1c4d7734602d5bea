/** Every tool of a remote MCP server. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import type { ToolFailure } from "../../domain/agents/ToolFailure.ts"
import { OutboundHttp } from "../OutboundHttp.ts"
import type { AgentTool, SourcedTool, ToolSource } from "../ToolSources.ts"
import * as Exchange from "./Exchange.ts"
import * as McpSession from "./McpSession.ts"

/** Milliseconds that a server's list of tools is believed, and how many lists are kept. */
const listTtlMs = 300_000
const maxLists = 256

/** Lists that were read lately, the oldest first. */
const rememberedLists = () => {
  const lists = new Map<
    string,
    { readonly until: number; readonly tools: ReadonlyArray<McpSession.RemoteTool> }
  >()
  return Effect.fn("ToolSources.listed")(function* (
    key: string,
    list: Effect.Effect<ReadonlyArray<McpSession.RemoteTool>, ToolFailure>
  ) {
    const now = yield* monotonicMillis
    const kept = lists.get(key)
    if (kept !== undefined && kept.until > now) return kept.tools
    const tools = yield* list
    lists.delete(key)
    lists.set(key, { until: now + listTtlMs, tools })
    for (const [oldest] of lists) {
      if (lists.size <= maxLists) break
      lists.delete(oldest)
    }
    return tools
  })
}

const targetOf = (tool: AgentTool) => (tool._tag === "Configured" ? tool.definition.mcp : undefined)

export const mcpSource: Effect.Effect<ToolSource, never, OutboundHttp> = Effect.map(
  OutboundHttp,
  (http): ToolSource => {
    const listed = rememberedLists()
    return {
      name: "mcp",
      offered: new Set(),
      has: (tool) => targetOf(tool) !== undefined,
      open: Effect.fn("ToolSources.mcp")(function* (tool) {
        const target = targetOf(tool)
        if (tool._tag === "Named" || target === undefined) return []
        const { definition, id, name, version } = tool
        const credential = yield* tool.credential
        // Opened when it is first needed in the turn.
        const session = yield* Effect.cached(
          McpSession.open(
            http,
            { url: target.url, headers: Exchange.headersFor(definition, credential) },
            definition.timeout
          )
        )
        // What a server lists may depend on the caller, so a list is not shared between callers.
        const caller = createHash("sha256").update(credential).digest("hex")
        const remote = yield* listed(
          `${id} ${version} ${caller}`,
          Effect.flatMap(session, ({ list }) => list)
        )
        return remote.map((one): SourcedTool => ({
          declaration: {
            name: `${name}_${one.name}`,
            description: one.description,
            parameters: { ...one.inputSchema, type: "object" }
          },
          timeoutMillis: definition.timeout * 1_000,
          call: (input) => Effect.flatMap(session, ({ call }) => call(one.name, input))
        }))
      })
    }
  }
)
