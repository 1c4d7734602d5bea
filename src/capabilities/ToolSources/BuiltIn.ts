/** The built-in tool sources. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OutboundHttp } from "../OutboundHttp.ts"
import { OtherToolSources, type ToolSource, ToolSources } from "../ToolSources.ts"
import { httpSource } from "./Http.ts"
import { mcpSource } from "./Mcp.ts"

/** The sources of these registrations. A later one replaces an earlier one of the same name. */
export const layerOf = <R>(
  sources: ReadonlyArray<Effect.Effect<ToolSource, never, R>>
): Layer.Layer<ToolSources, never, R> =>
  Layer.effect(
    ToolSources,
    Effect.map(Effect.all(sources), (made) => [
      ...new Map(made.map((source) => [source.name, source] as const)).values()
    ])
  )

/** HTTP, MCP, and those of {@link OtherToolSources}, such as functions of the host. */
export const layer: Layer.Layer<ToolSources, never, OutboundHttp> = Layer.unwrapEffect(
  Effect.map(OtherToolSources, (others) => layerOf([httpSource, mcpSource, ...others]))
)
