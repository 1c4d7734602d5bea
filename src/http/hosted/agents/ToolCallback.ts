/** The address to which authorization servers return browsers. */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { toolCallback } from "./ToolsApi.ts"

export class ToolCallback extends Context.Tag("http/hosted/agents/ToolCallback")<ToolCallback, string>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<ToolCallback> =>
  Layer.succeed(ToolCallback, new URL(toolCallback, appUrl).href)
