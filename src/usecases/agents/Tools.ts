/** The tools of an agent, as configured in the dashboard. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { withCommit } from "../../concurrency/AfterCommit.ts"
import { atLeast, type SessionUser } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Conflict, NotFound, ValidationError, invalidField, orNoSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import {
  connectionBasis,
  contradiction,
  type CreateTool,
  maxTools,
  newToolId,
  type PatchTool,
  type Tool,
  type ToolDefinition,
  type ToolId
} from "../../domain/agents/Tool.ts"
import { outdated } from "../../domain/Version.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { type StoredTool, ToolStore } from "../../store/agents/Tools.ts"
import { ToolTokens } from "./ToolTokens.ts"

const nameTaken = () =>
  new Conflict({ message: `The agent has a tool of this name, or ${maxTools} tools already.` })

const invalid = (field: string, message: string) =>
  invalidField([field], message, "The settings of the tool contradict each other.")

const connectionOf = ({ connection, definition }: StoredTool): Tool["connection"] => {
  if (connection === null || connection.basis !== connectionBasis(definition)) return null
  const { basis: _, ...rest } = connection
  return rest
}

const shownTool = ({ definition, secret, ...row }: StoredTool): Tool => ({
  ...row,
  ...definition,
  connection: connectionOf({ definition, secret, ...row }),
  auth: { ...definition.auth, hasSecret: secret !== null }
})

const hidden = "***"
const hide = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(values).map((name) => [name, hidden]))

const withoutQuery = (url: string): string => url.replace(/\?.*$/su, "")

/** Headers and query parameters of a tool may hold secrets: names are shown, values never. */
export const withoutValues = <A extends Pick<ToolDefinition, "http" | "mcp">>({ http, mcp, ...tool }: A) => {
  if (http === undefined) {
    return { ...tool, ...(mcp === undefined ? {} : { mcp: { url: withoutQuery(mcp.url) } }) }
  }
  const { body: _, ...rest } = http
  const { headers, query, url } = http
  return { ...tool, http: { ...rest, url: withoutQuery(url), headers: hide(headers), query: hide(query) } }
}

/** The server that the secret is for. */
const originOf = ({ auth, http, mcp }: ToolDefinition) => {
  if (auth.kind === "oauth") return auth.issuer ?? ""
  const [origin = ""] = /^https?:\/\/[^/?#]+/i.exec(http?.url ?? mcp?.url ?? "") ?? []
  return origin.toLowerCase()
}

/** `http` and `mcp` exclude each other: sending one removes the other. Null removes it. */
const patchedDefinition = (
  { http: oldHttp, mcp: oldMcp, ...stays }: ToolDefinition,
  { name: _, auth, http: sentHttp, mcp: sentMcp, ...given }: PatchTool
): ToolDefinition => {
  const http = sentHttp === undefined && !sentMcp ? oldHttp : sentHttp
  const mcp = sentMcp === undefined && !sentHttp ? oldMcp : sentMcp
  return {
    ...stays,
    ...given,
    ...(http && { http }),
    ...(mcp && { mcp }),
    ...(auth !== undefined && { auth: withoutSecret(auth) })
  }
}

const withoutSecret = ({ secret: _, ...auth }: NonNullable<PatchTool["auth"]>) => auth

export class Tools extends Effect.Service<Tools>()("usecases/agents/Tools", {
  effect: Effect.gen(function* () {
    const store = yield* ToolStore
    const agents = yield* AgentStore
    const box = yield* SecretBox
    const tokens = yield* ToolTokens
    const sql = yield* SqlClient.SqlClient

    const sealSecret = (auth: PatchTool["auth"]) =>
      auth?.secret === undefined || auth.kind === "none"
        ? Effect.succeed(null)
        : box.seal("tool-secret", Redacted.value(auth.secret))

    /**
     * The agent's tools, oldest first. A caller without permission to change them gets no values of headers and query
     * parameters.
     */
    const list = Effect.fn("Tools.list")(function* (
      user: SessionUser,
      agentId: AgentId,
      request: PageRequest
    ) {
      const { next, rows } = yield* store.page(
        yield* agents.findScope(user, agentId).pipe(orNoSuch("agent")),
        request
      )
      const tools = rows.map(shownTool)
      return { rows: atLeast(user.role, "admin") ? tools : tools.map(withoutValues), next }
    })

    const create = Effect.fn("Tools.create")(function* (
      scope: TenantScope,
      agentId: AgentId,
      { name, auth, ...given }: CreateTool
    ) {
      const agent = yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent"))
      const definition: ToolDefinition = {
        ...given,
        auth: auth === undefined ? { kind: "none" } : withoutSecret(auth)
      }
      const secret = yield* sealSecret(auth)
      const problem = contradiction(definition, secret !== null)
      if (problem !== undefined) return yield* invalid(problem.field, problem.message)
      const created = yield* store.insert(agent, { id: yield* newToolId, name, definition, secret })
      if (Option.isNone(created)) {
        yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent"))
        return yield* nameTaken()
      }
      return shownTool(created.value)
    })

    const findTool = Effect.fn("Tools.findTool")(function* (scope: TenantScope, id: ToolId) {
      return yield* store.find(scope, id).pipe(orNoSuch("tool"))
    })

    /** Applies `change` to `before`. A stored secret is kept while its kind and its server stay the same. */
    const patchedTool = Effect.fn("Tools.patchedTool")(function* (before: StoredTool, change: PatchTool) {
      const definition = patchedDefinition(before.definition, change)
      const fresh = yield* sealSecret(change.auth)
      const kept = definition.auth.kind === before.definition.auth.kind ? before.secret : null
      if (kept !== null && fresh === null && originOf(definition) !== originOf(before.definition))
        return yield* invalid("auth", "Another server was named: send the secret again")
      const secret = fresh ?? kept
      const problem = contradiction(definition, secret !== null)
      if (problem !== undefined) return yield* invalid(problem.field, problem.message)
      const after: StoredTool = { ...before, name: change.name ?? before.name, definition, secret }
      return after
    })

    /**
     * CONFLICT when `expected` is no longer the newest version. Without `expected` the change is applied to the newest
     * version.
     */
    const patch = (
      scope: TenantScope,
      id: ToolId,
      change: PatchTool,
      expected: number | null = null
    ): Effect.Effect<Tool, NotFound | ValidationError | Conflict> =>
      Effect.gen(function* () {
        const before = yield* findTool(scope, id)
        if (expected !== null && expected !== before.version) return yield* outdated(before.version)
        const updated = yield* store.update(scope, yield* patchedTool(before, change))
        if (Option.isSome(updated)) return shownTool(updated.value)
        const { version } = yield* findTool(scope, id)
        // A concurrent change came first.
        return version === before.version ? yield* nameTaken() : yield* patch(scope, id, change, expected)
      }).pipe(Effect.withSpan("Tools.patch"))

    /** Revokes the tool's tokens, too, if it has any. */
    const remove = Effect.fn("Tools.remove")(
      function* (scope: TenantScope, id: ToolId) {
        yield* tokens.disconnect(scope, yield* store.hold(scope, id).pipe(orNoSuch("tool")))
        yield* store.remove(scope, id)
      },
      sql.withTransaction,
      Effect.catchTag("SqlError", Effect.die),
      withCommit
    )

    return { list, create, patch, remove } as const
  })
}) {}
