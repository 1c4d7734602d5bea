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
import { connectionBasis } from "../../domain/agents/Tool.ts"
import { allScopes, noScopes, scopesIn, type ToolScopes } from "../../domain/agents/ToolConnection.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import { type StoredConnection, ToolConnectionStore } from "../../store/agents/ToolConnections.ts"
import type { StoredTool } from "../../store/agents/Tools.ts"
import { afterDemand, isWider, scopesOfAll } from "./ToolScopes.ts"

/** Time between two looks at a connection that another process renews, and their maximum duration. */
const waitMillis = 100
const maxWaitMillis = 15_000

/** New tokens are stored again, within the lease, while the database does not take them. */
const storeRetries = Schedule.intersect(Schedule.spaced("1 second"), Schedule.recurs(20))
/** At the end of the process: time for renewals to end. A request to an authorization server takes at most 10 s. */
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

/** A tool's tokens, and who gives them. */
interface Connection {
  readonly basis: string
  readonly server: AuthorizationServer
  readonly resource: string
  readonly clientId: string
  /** Null for a client that was registered by hand: its secret is the tool's. */
  readonly clientSecret: string | null
  readonly scopes: ToolScopes
}

const isMachine = ({ definition: { auth } }: StoredTool) => auth.grant === "client_credentials"
const needsPerson = (tool: StoredTool) =>
  toolFailure(
    "TOOL_CONNECTION_REQUIRED",
    isMachine(tool)
      ? "the authorization server or the MCP server does not accept the tool's client"
      : "an admin has to connect the tool again"
  )
const busyElsewhere = () => toolFailure("TOOL_TIMEOUT", "another process requests its token")
const fails = (error: ToolAuthorizationError) => toolFailure("TOOL_FAILED", error.message)

const lacksScopes = (tool: StoredTool, scopes: ReadonlyArray<string>) => {
  const what = scopes.length === 0 ? "that it does not name" : scopes.join(" ")
  return toolFailure(
    "TOOL_SCOPE_REQUIRED",
    isMachine(tool)
      ? `the MCP server demands scopes that the tool's client was not granted: ${what}`
      : `the MCP server demands more scopes, so an admin has to connect the tool again: ${what}`
  )
}

/** A client that registered itself. */
const registered = (clientId: string, secret: string | null): ToolClient => ({
  clientId,
  clientSecret: secret === null ? null : Redacted.make(secret)
})

const sealedOtherwise = () =>
  new ToolAuthorizationError({
    reason: "Invalid",
    message: "The client's secret cannot be opened, as it was sealed with another SPOKE_SECRET. Set it again."
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

    /** The client that was registered by hand, if there is one. */
    const ownClient = Effect.fn("ToolTokens.ownClient")(function* ({
      definition: { auth },
      secret
    }: StoredTool) {
      if (auth.clientId === undefined) return null
      const { clientId } = auth
      if (secret === null) return { clientId, clientSecret: null } satisfies ToolClient
      const clientSecret = yield* box.open("tool-secret", secret)
      if (Option.isNone(clientSecret)) return yield* sealedOtherwise()
      return { clientId, clientSecret: Redacted.make(clientSecret.value) } satisfies ToolClient
    })

    /** The access token, and what is stored with it. A server may keep the refresh token as it is. */
    const toStored = Effect.fn("ToolTokens.toStored")(function* (
      { basis, clientId, clientSecret, resource, scopes, server }: Connection,
      { access: token, lastsSeconds, refresh, scope: granted }: Tokens,
      before: string | null
    ) {
      const access = Redacted.value(token)
      const tokens = yield* sealTokens({
        access,
        refresh: refresh === null ? before : Redacted.value(refresh),
        clientSecret
      })
      const known = granted === null ? scopes : { ...scopes, granted: scopesIn(granted) }
      return { access, stored: { basis, server, resource, clientId, scopes: known, tokens, lastsSeconds } }
    })

    /** Stores the tokens of a new sign-in, for which `requested` are the scopes. */
    const connect = Effect.fn("ToolTokens.connect")(function* (
      { tenantId }: TenantScope,
      tool: StoredTool,
      connection: Omit<Connection, "scopes">,
      requested: ReadonlyArray<string>,
      tokens: Tokens
    ) {
      const scopes = { ...noScopes, requested, granted: requested }
      const { stored } = yield* toStored({ ...connection, scopes }, tokens, null)
      yield* store.connect({ tenantId }, tool.id, stored)
    })

    /**
     * A token without a person, with the scopes of the last one unless others are given. The authorization server is
     * looked up once, and again when it has refused.
     */
    const byClient = Effect.fn("ToolTokens.byClient")(function* (
      tool: StoredTool,
      basis: string,
      row: StoredConnection | null,
      given: ToolScopes | null
    ) {
      const client = yield* ownClient(tool)
      const { auth, mcp } = tool.definition
      if (client === null || mcp === undefined) return yield* sealedOtherwise()
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

    const byRefresh = Effect.fn("ToolTokens.byRefresh")(function* (
      tool: StoredTool,
      basis: string,
      { clientId, resource, scopes, server }: StoredConnection,
      before: Sealed
    ) {
      if (before.refresh === null || server === null || resource === null || clientId === null) {
        return yield* new ToolAuthorizationError({ reason: "Refused", message: "There is no refresh token." })
      }
      const { clientSecret } = before
      const client = (yield* ownClient(tool)) ?? registered(clientId, clientSecret)
      const tokens = yield* authorization.refresh({ server, resource }, client, Redacted.make(before.refresh))
      const connection = { basis, server, resource, clientId, clientSecret, scopes: scopes ?? noScopes }
      return yield* toStored(connection, tokens, before.refresh)
    })

    /**
     * Requests new tokens. Null when another process does. It runs to its end although the turn is cancelled or the
     * process stops, because the answer to a refresh token comes once. A refusal of more scopes than the connection has
     * does not end it.
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
          ? byClient(tool, basis, row, wider)
          : byRefresh(tool, basis, row, before)
      const staysOn = isWider(row, wider)
      const work = request.pipe(
        Effect.flatMap(({ access, stored }) =>
          store
            .settle({ tenantId }, tool.id, lease, stored)
            .pipe(Effect.sandbox, Effect.retry(storeRetries), Effect.unsandbox, Effect.as(access))
        ),
        Effect.tapError((error) =>
          Effect.zipRight(
            Effect.logWarning("A tool got no new token", {
              tenantId,
              tool: tool.id,
              reason: error.reason,
              problem: error.message
            }),
            store.release({ tenantId }, tool.id, lease, error.reason === "Refused" && !staysOn ? basis : null)
          )
        ),
        Effect.onInterrupt(() => store.release({ tenantId }, tool.id, lease))
      )
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(store.lease({ tenantId }, tool.id, basis, row?.version ?? null, lease), (isOurs) =>
          isOurs
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
      const person = Effect.fail(needsPerson(tool))
      if (basis === undefined) return yield* person
      const until = (yield* Clock.currentTimeMillis) + maxWaitMillis
      let first: number | null | undefined
      for (;;) {
        const row = Option.getOrNull(yield* store.find(owner, tool.id))
        const version = row?.version ?? null
        first = first === undefined ? version : first
        const isOurs = row !== null && row.basis === basis && row.state === "connected"
        const tokens = isOurs ? Option.getOrNull(yield* openTokens(row)) : null
        // A token that another process has just requested is used, however short it lasts.
        const isNew = version !== first
        const access = tokens !== null && (isNew || tokens.access !== rejected) ? tokens.access : null
        if (access !== null && !(isNew ? row?.isOver : row?.isEnding)) return access
        if (!isMachine(tool) && tokens === null) return yield* person
        if (row?.basis === basis && row.state === "refused" && !row.isOld) return yield* person
        const usable = row?.isOver === false ? access : null
        const fresh = yield* renew(owner, tool, basis, row, isMachine(tool) ? null : tokens).pipe(
          Effect.catchTag("ToolAuthorizationError", (error) => {
            if (error.reason === "Refused") return person
            return usable === null ? Effect.fail(fails(error)) : Effect.succeed(usable)
          })
        )
        const found = fresh ?? usable
        if (found !== null) return found
        if ((yield* Clock.currentTimeMillis) > until) return yield* Effect.fail(busyElsewhere())
        yield* Effect.sleep(waitMillis)
      }
    })

    /** Requests a token of the client itself now. Nothing happens while another process does. */
    const byHand = Effect.fn("ToolTokens.byHand")(function* (owner: TenantScope, tool: StoredTool) {
      const basis = connectionBasis(tool.definition)
      if (basis === undefined) return
      const row = Option.getOrNull(yield* store.find(owner, tool.id))
      const { scopes } = tool.definition.auth
      const known = scopesOfAll(row, basis)
      const all = scopes === undefined ? known : allScopes(scopes, known)
      const wider = all.length === 0 ? null : { ...noScopes, requested: all, granted: all }
      yield* renew(owner, tool, basis, row, null, wider)
    })

    /**
     * A token that has the scopes that the MCP server demands. A client requests them once, unless the tool's scopes are
     * fixed. Fails with TOOL_SCOPE_REQUIRED when a person has to connect the tool again; the connection then says so.
     */
    const widenScopes = Effect.fn("ToolTokens.widenScopes")(function* (
      owner: TenantScope,
      tool: StoredTool,
      token: string,
      demanded: ReadonlyArray<string>
    ) {
      const basis = connectionBasis(tool.definition)
      const lacks = Effect.fail(lacksScopes(tool, demanded))
      if (basis === undefined) return yield* lacks
      const until = (yield* Clock.currentTimeMillis) + maxWaitMillis
      for (;;) {
        const row = Option.getOrNull(yield* store.find(owner, tool.id))
        const isOurs = row !== null && row.basis === basis && row.state === "connected"
        const access = isOurs ? Option.getOrNull(yield* openTokens(row))?.access : undefined
        if (row === null || access === undefined) return yield* Effect.fail(needsPerson(tool))
        // Another call has received one meanwhile.
        if (access !== token) return access
        if (!row.isLeased) {
          const { refused, wider } = afterDemand(row.scopes, demanded)
          if (wider === null || !isMachine(tool) || tool.definition.auth.scopes !== undefined) {
            yield* store.setScopes(owner, tool.id, row.version, refused)
            return yield* lacks
          }
          const notGranted = store.setScopes(owner, tool.id, row.version, { ...refused, tried: wider.tried })
          const fresh = yield* renew(owner, tool, basis, row, null, wider).pipe(
            Effect.catchTag("ToolAuthorizationError", (error) =>
              error.reason === "Refused" ? Effect.zipRight(notGranted, lacks) : Effect.fail(fails(error))
            )
          )
          if (fresh !== null) return fresh
        }
        if ((yield* Clock.currentTimeMillis) > until) return yield* Effect.fail(busyElsewhere())
        yield* Effect.sleep(waitMillis)
      }
    })

    /** The MCP server does not accept `token`, although it is new: only a person can help. */
    const refuse = Effect.fn("ToolTokens.refuse")(function* (
      owner: TenantScope,
      tool: StoredTool,
      token: string
    ) {
      const row = Option.getOrNull(yield* store.find(owner, tool.id))
      if (row === null) return needsPerson(tool)
      const tokens = Option.getOrNull(yield* openTokens(row))
      if (tokens?.access === token) yield* store.refuse(owner, tool.id, row.version)
      return needsPerson(tool)
    })

    /** Reads the tool's tokens now. The result revokes them where the server can; a failure is logged. */
    const revocation = Effect.fn("ToolTokens.revocation")(function* (owner: TenantScope, tool: StoredTool) {
      const row = Option.getOrNull(yield* store.find(owner, tool.id))
      const tokens = row === null ? null : Option.getOrNull(yield* openTokens(row))
      if (row === null || row.server === null || row.clientId === null || tokens === null) return Effect.void
      const { clientId, server } = row
      const { access, clientSecret, refresh } = tokens
      // The secret of another client, with which the tool was connected to another server, is not for this one.
      const isOfDefinition = row.basis === connectionBasis(tool.definition)
      return (isOfDefinition ? ownClient(tool) : Effect.succeed(null)).pipe(
        Effect.map((own) => own ?? registered(clientId, clientSecret)),
        // With the refresh token the access tokens made from it end too.
        Effect.flatMap((client) => authorization.revoke(server, client, Redacted.make(refresh ?? access))),
        Effect.catchAll(({ message, reason }) =>
          Effect.logWarning("A tool's token was removed, but not revoked at its server", {
            tenantId: owner.tenantId,
            tool: tool.id,
            reason,
            problem: message
          })
        )
      )
    })

    /** Removes the tokens, and revokes them after the commit where the server can. False when there were none. */
    const disconnect = Effect.fn("ToolTokens.disconnect")(function* (owner: TenantScope, tool: StoredTool) {
      const revoke = yield* revocation(owner, tool)
      if (!(yield* store.remove(owner, tool.id))) return false
      yield* afterCommit(revoke)
      return true
    })

    return { byHand, connect, current, disconnect, ownClient, refuse, revocation, widenScopes } as const
  })
}) {}
