/** A trial of a tool outside of a conversation. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { boundedRuntimeData } from "../chat/ChatTurn.ts"
import { JsonObject, Text } from "../Text.ts"
import { ToolFailureCode } from "./ToolFailure.ts"

export const ToolTrialRequest = Schema.Struct({
  /** One of the functions of an MCP server; the first by default. */
  function: optional(Text.pipe(Schema.maxLength(200))),
  /** The arguments as a model would send them. Without them no function is called. */
  arguments: optional(JsonObject),
  /** As in a chat request. */
  toolContext: optional(JsonObject),
  toolCredentials: optional(Schema.Record({ key: Schema.String, value: Schema.String }))
}).pipe(Schema.filter(boundedRuntimeData))
export type ToolTrialRequest = typeof ToolTrialRequest.Type

export const ToolTrial = Schema.Struct({
  /** The functions that a model is offered; empty if the tool is not available. */
  functions: Schema.Array(
    Schema.Struct({ name: Schema.String, description: Schema.String, parameters: JsonObject })
  ),
  /** Null if no function was called. */
  outcome: Schema.NullOr(
    Schema.Union(
      Schema.Struct({
        _tag: Schema.Literal("answer"),
        /** At most 8,192 characters. */
        text: Schema.String,
        isCut: Schema.Boolean
      }),
      Schema.Struct({ _tag: Schema.Literal("failure"), code: ToolFailureCode, message: Schema.String })
    )
  ),
  milliseconds: Schema.Number
})
export type ToolTrial = typeof ToolTrial.Type
