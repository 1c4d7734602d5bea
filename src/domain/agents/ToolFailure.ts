/** Why a tool call has no answer. */
import * as Schema from "effect/Schema"

/** Documented codes. */
export const ToolFailureCode = Schema.Literal(
  "SESSION_CREDENTIAL_REQUIRED",
  "BINDING_REQUIRED",
  "TOOL_CONNECTION_REQUIRED",
  "TOOL_SCOPE_REQUIRED",
  "INVALID_ARGUMENTS",
  "UNKNOWN_TOOL",
  "TOOL_FAILED",
  "TOOL_TIMEOUT"
)

/** The failure as the model sees it; `message` begins with the code. */
export interface ToolFailure {
  readonly code: typeof ToolFailureCode.Type
  readonly message: string
  /** With TOOL_SCOPE_REQUIRED, before the tool's connection has handled it: what the server demands. */
  readonly scopes?: ReadonlyArray<string>
}

export const toolFailure = (code: ToolFailure["code"], text: string): ToolFailure => ({
  code,
  message: `${code}: ${text}`.trim()
})
