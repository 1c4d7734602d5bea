/**
 * Access tokens of tools with OAuth. A refresh token is used once: one process at a time requests a new token, under a
 * lease, and the others wait for it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { randomUUID } from "node:crypto"
import {
  type AuthorizationServer,
  ToolAuthorization,
  ToolAuthorizationError,
  type ToolClient,
  type ToolTokens as Tokens
} from "../../capabilities/IdentityProvider.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { afterCommit } from "../../concurrency/AfterCommit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { connectionBasis, isMachine } from "../../domain/agents/Tool.ts"
import { allScopes, noScopes, scopesIn, type ToolScopes } from "../../domain/agents/ToolConnection.ts"
import { requestsMoreScopes, scopesAfterDemand, scopesToRequest } from "../../domain/agents/ToolScopes.ts"
import { type StoredConnection, ToolConnectionStore } from "../../store/agents/ToolConnections.ts"
import type { StoredTool } from "../../store/agents/Tools.ts"
import {
  connectionRequired,
  renewedElsewhere,
  scopesRequired,
  toolFailed,
  unreadableSecret
} from "./ToolTokenFailures.ts"

/** Poll interval, and maximum wait, while another process renews the connection. */
const pollMillis = 100
const maxWaitMillis = 15_000

/** Retries of storing new tokens while the database is unavailable. They end within the lease. */
const storeRetries = Schedule.intersect(Schedule.spaced("1 second"), Schedule.recurs(20))
/** Time for renewals to end when the process stops. A request to an authorization server takes at most 10 s. */
const drainTimeout = "12 seconds"

/** The sealed part of a connection. */
const Sealed = Schema.parseJson(
  Schema.Struct({
    access: Schema.String,
    refresh: Schema.NullOr(Schema.String),
    /** The secret of a client that registered itself. */
    clientSecret: Schema.NullOr(Schema.String)
  })
)
type Sealed = typeof Sealed.Type
const encodeSealed = Schema.encode(Sealed)
const decodeSealed = Schema.decodeOption(Sealed)

/** The authorization server and the client of a tool's tokens. */
interface Connection {
  readonly basis: string
  readonly server: AuthorizationServer
  readonly resource: string
  readonly clientId: string
  /** The secret of a client that registered itself; null for a configured client, whose secret is the tool's. */
  readonly clientSecret: string | null
  readonly scopes: ToolScopes
}

/** `secret` is null for a client without one. */
export const toolClient = (clientId: string, secret: string | null): ToolClient => ({
  clientId,
  clientSecret: secret === null ? null : Redacted.make(secret)
})

export class ToolTokens extends Effect.Service<ToolTokens>()("usecases/agents/ToolTokens", {
  scoped: Effect.gen(function* () {
    const store = yield* ToolConnectionStore
    const box = yield* SecretBox
    const authorization = yield* ToolAuthorization
    const renewals = yield* FiberSet.make<string, ToolAuthorizationError>()
    // Finalizers run in reverse order: this one waits before the set interrupts its remaining fibers. Nothing can be
    // interrupted in a finalizer otherwise, so that the time-out would wait for the fibers.
    yield* Effect.addFinalizer(() =>
      Effect.interruptible(FiberSet.awaitEmpty(renewals)).pipe(Effect.timeout(drainTimeout), Effect.ignore)
    )

    const sealTokens = (tokens: Sealed) =>
      Effect.flatMap(Effect.orDie(encodeSealed(tokens)), (text) => box.seal("tool-tokens", text))

    const openTokens = ({ tokens }: StoredConnection) =>
      tokens === null
        ? Effect.succeedNone
        : Effect.map(
            box.open("tool-tokens", tokens),
            Option.flatMap((text) => decodeSealed(text))
          )

    /** The client in the tool's configuration, or null. */
    const clientOf = Effect.fn("ToolTokens.clientOf")(function* ({
      definition: { auth },
      secret
    }: StoredTool) {
      if (auth.clientId === undefined) return null
      if (secret === null) return toolClient(auth.clientId, null)
      const clientSecret = yield* box.open("tool-secret", secret)
      if (Option.isNone(clientSecret)) return yield* unreadableSecret()
      return toolClient(auth.clientId, clientSecret.value)
    })

    /** The access token, and what is stored with it. A server may keep the refresh token as it is. */
    const toStored = Effect.fn("ToolTokens.toStored")(function* (
      { basis, clientId, clientSecret, resource, scopes, server }: Connection,
      { access: token, lastsSeconds, refresh, scope: granted }: Tokens,
      before: string | null
    ) {
      const access = Redacted.value(token)
      const opened = { access, refresh: refresh === null ? before : Redacted.value(refresh), clientSecret }
      const tokens = yield* sealTokens(opened)
      const kept = granted === null ? scopes : { ...scopes, granted: scopesIn(granted) }
      return { opened, stored: { basis, server, resource, clientId, scopes: kept, tokens, lastsSeconds } }
    })

    /** Revokes the tokens where the server can. A failure is logged. */
    const revoke = (
      { tenantId }: TenantScope,
      tool: StoredTool,
      { basis, clientId, server }: Pick<Connection, "basis" | "clientId" | "server">,
      { access, clientSecret, refresh }: Sealed
    ) =>
      // The secret of another client, with which the tool was connected to another server, is not for this one.
      (basis === connectionBasis(tool.definition) ? clientOf(tool) : Effect.succeed(null)).pipe(
        Effect.map((own) => own ?? toolClient(clientId, clientSecret)),
        // With the refresh token the access tokens made from it end too.
        Effect.flatMap((client) => authorization.revoke(server, client, Redacted.make(refresh ?? access))),
        Effect.catchAll(({ message, reason }) =>
          Effect.logWarning("A tool's token was removed, but not revoked at its server", {
            tenantId,
            tool: tool.id,
            reason,
            problem: message
          })
        )
      )

    /** For new tokens that could not be stored: the tool was disconnected or deleted while they were requested. */
    const revokeIfRemoved = (...[owner, tool, ...tokens]: Parameters<typeof revoke>) =>
      Effect.flatMap(store.find(owner, tool.id), (row) =>
        Option.isNone(row) ? revoke(owner, tool, ...tokens) : Effect.void
      )

    /**
     * Stores the tokens of a new sign-in, for which `requested` are the scopes. False when the tool has been deleted: the
     * tokens are revoked then.
     */
    const connect = Effect.fn("ToolTokens.connect")(function* (
      { tenantId }: TenantScope,
      tool: StoredTool,
      connection: Omit<Connection, "scopes">,
      requested: ReadonlyArray<string>,
      tokens: Tokens
    ) {
      const scopes = { ...noScopes, requested, granted: requested }
      const { opened, stored } = yield* toStored({ ...connection, scopes }, tokens, null)
      const isStored = yield* store.connect({ tenantId }, tool.id, stored)
      if (!isStored) yield* afterCommit(revoke({ tenantId }, tool, stored, opened))
      return isStored
    })

    /**
     * A token without a person, with the scopes of the last one unless others are given. The authorization server is
     * looked up once, and again when it has refused.
     */
    const requestByClient = Effect.fn("ToolTokens.requestByClient")(function* (
      tool: StoredTool,
      basis: string,
      row: StoredConnection | null,
      given: ToolScopes | null
    ) {
      const client = yield* clientOf(tool)
      const { auth, mcp } = tool.definition
      if (client === null || mcp === undefined) return yield* unreadableSecret()
      const known =
        row !== null &&
        row.state === "connected" &&
        row.basis === basis &&
        row.server !== null &&
        row.resource !== null
          ? { server: row.server, resource: row.resource, scope: null }
          : yield* authorization.discover(mcp.url, auth.issuer ?? null)
      const { resource, scope, server } = known
      const initial = auth.scopes ?? scopesIn(scope)
      const before = row?.basis === basis ? row.scopes : null
      const scopes = given ?? before ?? { ...noScopes, requested: initial, granted: initial }
      const target = { server, resource, scope: scopes.requested.join(" ") || null }
      const tokens = yield* authorization.clientCredentials(target, client)
      return yield* toStored(
        { basis, server, resource, clientId: client.clientId, clientSecret: null, scopes },
        tokens,
        null
      )
    })

    const requestByRefresh = Effect.fn("ToolTokens.requestByRefresh")(function* (
      tool: StoredTool,
      basis: string,
      { clientId, resource, scopes, server }: StoredConnection,
      before: Sealed
    ) {
      if (before.refresh === null || server === null || resource === null || clientId === null) {
        return yield* new ToolAuthorizationError({ reason: "Refused", message: "There is no refresh token." })
      }
      const { clientSecret } = before
      const client = (yield* clientOf(tool)) ?? toolClient(clientId, clientSecret)
      const tokens = yield* authorization.refresh({ server, resource }, client, Redacted.make(before.refresh))
      const connection = { basis, server, resource, clientId, clientSecret, scopes: scopes ?? noScopes }
      return yield* toStored(connection, tokens, before.refresh)
    })

    /**
     * Requests new tokens. Null while another process does. The request runs to its end although the turn is cancelled
     * or the process stops, because a refresh token is answered once. The connection stays when the server refuses only
     * scopes beyond those that it has.
     */
    const renew = (
      { tenantId }: TenantScope,
      tool: StoredTool,
      basis: string,
      row: StoredConnection | null,
      before: Sealed | null,
      wider: ToolScopes | null = null
    ) => {
      const lease = randomUUID()
      const request =
        row === null || before === null || wider !== null
          ? requestByClient(tool, basis, row, wider)
          : requestByRefresh(tool, basis, row, before)
      const isKept = requestsMoreScopes(row, wider)
      const work = request.pipe(
        Effect.flatMap(({ opened, stored }) =>
          store.settle({ tenantId }, tool.id, lease, stored).pipe(
            Effect.sandbox,
            Effect.retry(storeRetries),
            Effect.unsandbox,
            Effect.filterOrElse(Boolean, () => revokeIfRemoved({ tenantId }, tool, stored, opened)),
            Effect.as(opened.access)
          )
        ),
        Effect.tapError((error) =>
          Effect.zipRight(
            Effect.logWarning("A tool got no new token", {
              tenantId,
              tool: tool.id,
              reason: error.reason,
              problem: error.message
            }),
            store.release({ tenantId }, tool.id, lease, error.reason === "Refused" && !isKept ? basis : null)
          )
        ),
        Effect.onInterrupt(() => store.release({ tenantId }, tool.id, lease))
      )
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(store.lease({ tenantId }, tool.id, basis, row?.version ?? null, lease), (hasLease) =>
          hasLease
            ? Effect.flatMap(FiberSet.run(renewals, Effect.interruptible(work)), (fiber) =>
                restore(Fiber.join(fiber))
              )
            : Effect.succeed(null)
        )
      ).pipe(Effect.withSpan("ToolTokens.renew"))
    }

    /**
     * An access token for a call of the tool. `rejected` is one that the MCP server has not accepted. Fails with
     * TOOL_CONNECTION_REQUIRED when a person has to connect the tool.
     */
    const current = Effect.fn("ToolTokens.current")(function* (
      owner: TenantScope,
      tool: StoredTool,
      rejected: string | null = null
    ) {
      const basis = connectionBasis(tool.definition)
      const failConnection = Effect.fail(connectionRequired(tool))
      if (basis === undefined) return yield* failConnection
      const deadline = (yield* Clock.currentTimeMillis) + maxWaitMillis
      let firstVersion: number | null | undefined
      for (;;) {
        const row = Option.getOrNull(yield* store.find(owner, tool.id))
        const version = row?.version ?? null
        firstVersion = firstVersion === undefined ? version : firstVersion
        const isConnected = row !== null && row.basis === basis && row.state === "connected"
        const tokens = isConnected ? Option.getOrNull(yield* openTokens(row)) : null
        // A token that another process has just requested is used, however short it lasts.
        const isNew = version !== firstVersion
        const access = tokens !== null && (isNew || tokens.access !== rejected) ? tokens.access : null
        if (access !== null && !(isNew ? row?.isOver : row?.isEnding)) return access
        if (!isMachine(tool.definition) && tokens === null) return yield* failConnection
        if (row?.basis === basis && row.state === "refused" && !row.isOld) return yield* failConnection
        const usable = row?.isOver === false ? access : null
        const fresh = yield* renew(owner, tool, basis, row, isMachine(tool.definition) ? null : tokens).pipe(
          Effect.catchTag("ToolAuthorizationError", (error) => {
            if (error.reason === "Refused") return failConnection
            return usable === null ? toolFailed(error) : Effect.succeed(usable)
          })
        )
        const found = fresh ?? usable
        if (found !== null) return found
        if ((yield* Clock.currentTimeMillis) > deadline) return yield* Effect.fail(renewedElsewhere())
        yield* Effect.sleep(pollMillis)
      }
    })

    /** Requests a token without a person now. Does nothing while another process requests one. */
    const requestNow = Effect.fn("ToolTokens.requestNow")(function* (owner: TenantScope, tool: StoredTool) {
      const basis = connectionBasis(tool.definition)
      if (basis === undefined) return
      const row = Option.getOrNull(yield* store.find(owner, tool.id))
      const { scopes } = tool.definition.auth
      const knownScopes = scopesToRequest(row, basis)
      const all = scopes === undefined ? knownScopes : allScopes(scopes, knownScopes)
      const wider = all.length === 0 ? null : { ...noScopes, requested: all, granted: all }
      yield* renew(owner, tool, basis, row, null, wider)
    })

    /**
     * A token with the scopes that the MCP server demands. They are requested once, unless the tool's scopes are fixed
     * or it needs a person. If it cannot get them, this marks the connection and fails with TOOL_SCOPE_REQUIRED.
     */
    const widenScopes = Effect.fn("ToolTokens.widenScopes")(function* (
      owner: TenantScope,
      tool: StoredTool,
      token: string,
      demanded: ReadonlyArray<string>
    ) {
      const basis = connectionBasis(tool.definition)
      const failScopes = Effect.fail(scopesRequired(tool, demanded))
      if (basis === undefined) return yield* failScopes
      const deadline = (yield* Clock.currentTimeMillis) + maxWaitMillis
      for (;;) {
        const row = Option.getOrNull(yield* store.find(owner, tool.id))
        const isConnected = row !== null && row.basis === basis && row.state === "connected"
        const access = isConnected ? Option.getOrNull(yield* openTokens(row))?.access : undefined
        if (row === null || access === undefined) return yield* Effect.fail(connectionRequired(tool))
        // Another call has received one meanwhile.
        if (access !== token) return access
        if (!row.isLeased) {
          const { refused, wider } = scopesAfterDemand(row.scopes, demanded)
          if (wider === null || !isMachine(tool.definition) || tool.definition.auth.scopes !== undefined) {
            yield* store.setScopes(owner, tool.id, row.version, refused)
            return yield* failScopes
          }
          const notGranted = store.setScopes(owner, tool.id, row.version, { ...refused, tried: wider.tried })
          const fresh = yield* renew(owner, tool, basis, row, null, wider).pipe(
            Effect.catchTag("ToolAuthorizationError", (error) =>
              error.reason === "Refused" ? Effect.zipRight(notGranted, failScopes) : toolFailed(error)
            )
          )
          if (fresh !== null) return fresh
        }
        if ((yield* Clock.currentTimeMillis) > deadline) return yield* Effect.fail(renewedElsewhere())
        yield* Effect.sleep(pollMillis)
      }
    })

    /** Marks the connection as refused: the MCP server does not accept `token`, although it is new. */
    const refuse = Effect.fn("ToolTokens.refuse")(function* (
      owner: TenantScope,
      tool: StoredTool,
      token: string
    ) {
      const row = Option.getOrNull(yield* store.find(owner, tool.id))
      if (row === null) return connectionRequired(tool)
      const tokens = Option.getOrNull(yield* openTokens(row))
      if (tokens?.access === token) yield* store.refuse(owner, tool.id, row.version)
      return connectionRequired(tool)
    })

    /** Removes the tool's tokens. The result revokes them where the server can; none when there were none. */
    const take = Effect.fn("ToolTokens.take")(function* (owner: TenantScope, tool: StoredTool) {
      const row = Option.getOrNull(yield* store.take(owner, tool.id))
      if (row === null) return Option.none()
      const tokens = Option.getOrNull(yield* openTokens(row))
      const { basis, clientId, server } = row
      return Option.some(
        server === null || clientId === null || tokens === null
          ? Effect.void
          : revoke(owner, tool, { basis, clientId, server }, tokens)
      )
    })

    /** Removes the tokens, and revokes them after the commit. False when there were none. */
    const disconnect = Effect.fn("ToolTokens.disconnect")(function* (owner: TenantScope, tool: StoredTool) {
      const revocation = yield* take(owner, tool)
      if (Option.isSome(revocation)) yield* afterCommit(revocation.value)
      return Option.isSome(revocation)
    })

    return { requestNow, connect, current, disconnect, clientOf, refuse, take, widenScopes } as const
  })
}) {}
