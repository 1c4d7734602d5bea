/** Tools that an agent may call while it answers: an HTTP request, or the tools of a remote MCP server. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { AgentId, typeId } from "../Ids.ts"
import { canonical } from "../Json.ts"
import { nullable, optional, withDefault } from "../Optional.ts"
import { atMost, JsonObject, Text, withMessage } from "../Text.ts"
import { Version } from "../Version.ts"
import { oauthFields, ToolConnection } from "./ToolConnection.ts"

export const ToolId = Text.pipe(Schema.minLength(1), Schema.brand("ToolId"))
export type ToolId = typeof ToolId.Type
export const newToolId = Effect.map(Clock.currentTimeMillis, (now) => ToolId.make(typeId("tol", now)))

/** Maximum number of tools of one agent. */
export const maxTools = 64

/** A function name that providers accept. */
export const ToolName = Schema.String.pipe(
  Schema.pattern(
    /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
    withMessage("Expected a letter, then letters, digits, _ or -")
  )
)

const maxPointerCharacters = 500
const shortText = Text.pipe(Schema.maxLength(2_048))
const headerName = Schema.String.pipe(
  Schema.pattern(/^[!#$%&'*+.^_`|~\w-]{1,100}$/, withMessage("Expected a header's name"))
)

/** A JSON pointer (RFC 6901) into a document. */
const Pointer = Text.pipe(
  Schema.maxLength(maxPointerCharacters),
  Schema.pattern(/^(?:\/(?:[^~/]|~[01])*)+$/, withMessage("Expected a JSON pointer such as /account/id"))
)

const placeholder = /\{[A-Za-z_][\w-]*\}/g

/** The names of the `{name}` placeholders in `url`. */
export const placeholdersOf = (url: string): ReadonlyArray<string> =>
  [...url.matchAll(placeholder)].map(([found]) => found.slice(1, -1))

const isAddress = (text: string): boolean => {
  const filled = text.replaceAll(placeholder, "x")
  if (!/^https?:\/\/[^\s/?#@\\{}]+(?:[/?][^\s#\\]*)?$/i.test(text) || urlOf(filled) === null) return false
  return !/[{}]/.test(filled)
}

/**
 * An absolute URL without credentials. Placeholders are allowed only in its path and query, so that a value cannot change
 * the host.
 */
const Address = Text.pipe(
  Schema.maxLength(2_048),
  Schema.filter(
    (text) => isAddress(text) || "Expected an http or https URL; {name} in its path or query only"
  )
)

const McpAddress = Address.pipe(
  Schema.filter((text) => placeholdersOf(text).length === 0 || "Expected a URL without placeholders")
)

const HttpTarget = Schema.Struct({
  method: withDefault(Schema.Literal("GET", "POST", "PUT", "PATCH", "DELETE"), () => "GET" as const),
  url: Address,
  headers: withDefault(Schema.Record({ key: headerName, value: shortText }), () => ({})),
  query: withDefault(
    Schema.Record({ key: Schema.String.pipe(Schema.maxLength(200)), value: shortText }),
    () => ({})
  ),
  body: optional(JsonObject)
})
export type HttpTarget = typeof HttpTarget.Type

const McpTarget = Schema.Struct({ url: McpAddress })

/** A value of `toolContext` and the place of the request that it goes to. */
export const Binding = Schema.Struct({
  from: Pointer,
  to: Schema.Union(
    Schema.TemplateLiteral("header:", Schema.String),
    Schema.TemplateLiteral("query:", Schema.String),
    Schema.TemplateLiteral("path:", Schema.String),
    Schema.TemplateLiteral("body:/", Schema.String)
  ).pipe(
    Schema.filter(
      (to) => to.length <= maxPointerCharacters || `Expected at most ${maxPointerCharacters} characters`
    ),
    Schema.filter(
      (to) =>
        /^(?:header:[!#$%&'*+.^_`|~\w-]{1,100}|query:.{1,200}|path:[A-Za-z_][\w-]{0,99}|body:(?:\/(?:[^~/]|~[01]){0,100})+)$/.test(
          to
        ) || "Expected header:Name, query:name, path:name or body:/pointer"
    )
  )
})
export type Binding = typeof Binding.Type

const authFields = {
  kind: Schema.Literal("none", "bearer", "header", "basic", "oauth"),
  /** `widget-session` stands for the slot of that name. */
  name: optional(Text.pipe(Schema.maxLength(100))),
  /** The header of kind `header`; `name` when omitted. */
  header: optional(headerName),
  /** The key of `toolCredentials` that holds the credential. */
  slot: optional(Text.pipe(Schema.minLength(1), Schema.maxLength(100))),
  ...oauthFields
}
const StoredAuth = Schema.Struct(authFields)
type ToolAuth = typeof StoredAuth.Type

/** `user:password` for kind `basic`, the client's secret for kind `oauth`. */
const Secret = Schema.Redacted(Schema.String.pipe(Schema.minLength(1), Schema.maxLength(8_192)))
const AuthInput = Schema.Struct({ ...authFields, secret: optional(Secret) })
const ShownAuth = Schema.Struct({ ...authFields, hasSecret: Schema.Boolean })

const widgetSession = "widget-session"

/** The slot that the credential comes from, or undefined when it is stored. */
export const slotOf = ({ name, slot }: ToolAuth): string | undefined =>
  slot ?? (name === widgetSession ? widgetSession : undefined)

const noParameters = () => ({ type: "object", properties: {} })
const size = (value: JsonObject) => JSON.stringify(value).length

const Description = atMost(4_000)
const Parameters = JsonObject.pipe(
  Schema.filter((schema) => size(schema) <= 32_768 || "Expected at most 32 KiB of JSON Schema"),
  Schema.filter((schema) => schema["type"] === "object" || 'Expected a JSON Schema of type "object"')
)
const Bindings = Schema.Array(Binding).pipe(Schema.maxItems(20))
const Timeout = Schema.Int.pipe(Schema.between(1, 30))

const defaultTimeout = () => 15
const noAuth = (): ToolAuth => ({ kind: "none" })

/** The stored fields of a tool, without its name and its secret. */
export const ToolDefinition = Schema.Struct({
  description: withDefault(Description, () => ""),
  parameters: withDefault(Parameters, noParameters),
  http: optional(HttpTarget),
  mcp: optional(McpTarget),
  bindings: withDefault(Bindings, () => []),
  auth: withDefault(StoredAuth, noAuth),
  /** Time-out of one call, in seconds. */
  timeout: withDefault(Timeout, defaultTimeout)
})
export type ToolDefinition = typeof ToolDefinition.Type

/** A tool in answers. It shows whether there is a secret, never the secret. */
export const Tool = Schema.Struct({
  id: ToolId,
  agentId: AgentId,
  name: ToolName,
  ...ToolDefinition.fields,
  auth: ShownAuth,
  /** Null unless the kind is `oauth` and the tool is connected, or was. */
  connection: Schema.NullOr(ToolConnection),
  version: Version,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type Tool = typeof Tool.Type

/** Body of `POST /api/agents/:id/tools`. The use-case checks for contradictions. */
export const CreateTool = Schema.Struct({
  name: ToolName,
  ...ToolDefinition.fields,
  auth: optional(AuthInput)
})
export type CreateTool = typeof CreateTool.Type

/** A tool in a configuration file, under its name. Without `secret` the stored one stays. */
export const ConfiguredTool = Schema.Struct({ ...ToolDefinition.fields, auth: optional(AuthInput) })
export type ConfiguredTool = typeof ConfiguredTool.Type

/** Body of `PATCH /api/tools/:id`. Omitted fields stay, also the secret; null sets a field to its default. */
export const PatchTool = Schema.Struct({
  name: optional(ToolName),
  description: nullable(Description, () => ""),
  parameters: nullable(Parameters, noParameters),
  http: optional(Schema.NullOr(HttpTarget)),
  mcp: optional(Schema.NullOr(McpTarget)),
  bindings: nullable(Bindings, () => []),
  auth: nullable(AuthInput, noAuth),
  timeout: nullable(Timeout, defaultTimeout)
})
export type PatchTool = typeof PatchTool.Type

const methodsWithBody: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"])

const bindingProblem = ({ http, bindings }: ToolDefinition): string | undefined => {
  if (http === undefined) return bindings.length > 0 ? "Bindings need an http tool" : undefined
  const names = new Set(placeholdersOf(http.url))
  for (const { to } of bindings) {
    if (to.startsWith("path:") && !names.has(to.slice(5)))
      return "A path binding names no placeholder of the URL"
    if (to.startsWith("body:") && !methodsWithBody.has(http.method))
      return "A body binding needs POST, PUT or PATCH"
  }
  return undefined
}

/** True if the tool connects with its client's own credentials, without a user. */
export const isMachine = ({ auth }: ToolDefinition): boolean => auth.grant === "client_credentials"

/**
 * The settings for which a connection by OAuth was made. If the tool's differ, it has to be connected again. Undefined
 * for a tool without OAuth.
 */
export const connectionBasis = ({ auth, mcp }: ToolDefinition): string | undefined =>
  auth.kind !== "oauth" || mcp === undefined
    ? undefined
    : canonical([
        mcp.url,
        auth.grant ?? "authorization_code",
        auth.clientId ?? null,
        auth.issuer ?? null,
        auth.scopes ?? null
      ])

const oauthProblem = ({ auth, mcp }: ToolDefinition, hasSecret: boolean): string | undefined => {
  if (mcp === undefined) return "OAuth needs an mcp tool"
  if (slotOf(auth) !== undefined) return "OAuth takes no credential from the request"
  if (hasSecret && (auth.clientId === undefined || auth.issuer === undefined)) {
    return "The secret of a client needs clientId, and issuer, the server that it is for"
  }
  if (auth.grant === "client_credentials" && !hasSecret) return "client_credentials needs a secret"
  return undefined
}

/** The first contradiction between the tool's fields, with the name of the field; undefined if there is none. */
export const contradiction = (
  definition: ToolDefinition,
  hasSecret: boolean
): { readonly field: string; readonly message: string } | undefined => {
  const { auth, http, mcp } = definition
  if ((http === undefined) === (mcp === undefined))
    return { field: "http", message: "Expected either http or mcp" }
  const binding = bindingProblem(definition)
  if (binding !== undefined) return { field: "bindings", message: binding }
  if (auth.kind === "none") return undefined
  if (auth.kind === "oauth") {
    const problem = oauthProblem(definition, hasSecret)
    return problem === undefined ? undefined : { field: "auth", message: problem }
  }
  if (slotOf(auth) === undefined && !hasSecret)
    return { field: "auth", message: "Expected a secret or a slot" }
  const header = auth.header ?? auth.name
  if (auth.kind === "header" && (header === undefined || !Schema.is(headerName)(header)))
    return { field: "auth", message: "Expected header, the name of a header" }
  return undefined
}
