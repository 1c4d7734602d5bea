/** Connects tools to MCP servers with OAuth: a person signs in at the authorization server and returns. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Credentials } from "../../capabilities/Credentials.ts"
import {
  AuthorizationServer,
  ToolAuthorization,
  type ToolAuthorizationError,
  type ToolClient
} from "../../capabilities/IdentityProvider.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { withOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { connectionBasis, isMachine, type ToolId } from "../../domain/agents/Tool.ts"
import {
  allScopes,
  type ClientAddresses,
  scopesIn,
  type ToolAuthorizationResponse,
  ToolSignInProblem
} from "../../domain/agents/ToolConnection.ts"
import { scopesToRequest } from "../../domain/agents/ToolScopes.ts"
import {
  Conflict,
  NotFound,
  ServiceUnavailable,
  ValidationError,
  invalidField,
  orNoSuch
} from "../../domain/Errors.ts"
import { AgentId } from "../../domain/Ids.ts"
import { ToolConnectionStore } from "../../store/agents/ToolConnections.ts"
import { type StoredTool, ToolStore } from "../../store/agents/Tools.ts"
import { toolClient, ToolTokens } from "./ToolTokens.ts"

/** Time from the start of a sign-in to its end. */
const signInLifetime = Duration.minutes(10)

/** Maximum concurrent exchanges with authorization servers, those of one tenant, and those that may wait. */
const limits = { permits: 64, maxPermitsPerOwner: 4, maxWaiting: 1_024 }

/** The sealed state of a sign-in. */
const Flow = Schema.parseJson(
  Schema.Struct({
    agentId: AgentId,
    basis: Schema.String,
    server: AuthorizationServer,
    resource: Schema.String,
    clientId: Schema.String,
    /** The secret of a client that has registered itself for this sign-in. */
    clientSecret: Schema.NullOr(Schema.String),
    /** The requested scopes. */
    scopes: Schema.Array(Schema.String),
    state: Schema.String,
    verifier: Schema.String
  })
)
const encodeFlow = Schema.encode(Flow)
const decodeFlow = Schema.decodeOption(Flow)

/** The tool was not connected. `agentId` is null when the sign-in is not known. */
export class ToolSignInRefused extends Schema.TaggedError<ToolSignInRefused>()("ToolSignInRefused", {
  problem: ToolSignInProblem,
  agentId: Schema.NullOr(AgentId)
}) {}

const problemOfReason = {
  Denied: "denied",
  Refused: "retry",
  Unavailable: "provider",
  Invalid: "provider"
} as const

const noConnection = () => new NotFound({ message: "The tool is not connected." })
const tooManyConnecting = () =>
  new ServiceUnavailable({ message: "Too many tools are being connected. Try again shortly." })
const noOAuth = () => new Conflict({ message: "The tool's credential is not OAuth." })
const noSession = () =>
  new Conflict({
    message: "A person has to connect this tool in the dashboard. Programs use client_credentials."
  })

const toRequestError = (error: ToolAuthorizationError): ServiceUnavailable | ValidationError =>
  error.reason === "Unavailable"
    ? new ServiceUnavailable({ message: error.message })
    : invalidField(["auth"], error.message, "The tool cannot be connected.")

export class ToolConnections extends Effect.Service<ToolConnections>()("usecases/agents/ToolConnections", {
  effect: Effect.gen(function* () {
    const tools = yield* ToolStore
    const store = yield* ToolConnectionStore
    const tokens = yield* ToolTokens
    const authorization = yield* ToolAuthorization
    const credentials = yield* Credentials
    const box = yield* SecretBox
    const limiter = new FairLimiter({ name: "tool-sign-ins", ...limits })

    const findTool = Effect.fn("ToolConnections.findTool")(function* (scope: TenantScope, id: ToolId) {
      return yield* tools.find(scope, id).pipe(orNoSuch("tool"))
    })

    const logFailure =
      ({ tenantId }: TenantScope, tool: ToolId) =>
      (error: ToolAuthorizationError) =>
        Effect.logWarning("A tool was not connected", {
          tenantId,
          tool,
          reason: error.reason,
          problem: error.message
        })

    /**
     * A client for a tool without a configured one: identified by the address of its metadata where the server reads
     * it, else registered now.
     */
    const makeClient = (
      server: AuthorizationServer,
      { documentUrl, redirectUri }: ClientAddresses
    ): Effect.Effect<ToolClient, ToolAuthorizationError> =>
      server.readsClientDocuments && documentUrl !== null
        ? Effect.succeed({ clientId: documentUrl, clientSecret: null })
        : authorization.register(server, redirectUri)

    const beginSignIn = Effect.fn("ToolConnections.beginSignIn")(function* (
      { tenantId }: TenantScope,
      tool: StoredTool,
      session: Uint8Array,
      addresses: ClientAddresses
    ) {
      const { auth, mcp } = tool.definition
      const basis = connectionBasis(tool.definition)
      if (basis === undefined || mcp === undefined) return yield* noOAuth()
      const before = Option.getOrNull(yield* store.find({ tenantId }, tool.id))
      const { client, scopes, target } = yield* Effect.gen(function* () {
        const found = yield* authorization.discover(mcp.url, auth.issuer ?? null)
        const scopes = allScopes(auth.scopes ?? scopesIn(found.scope), scopesToRequest(before, basis))
        const target = { ...found, scope: scopes.join(" ") || null }
        const configuredClient = yield* tokens.clientOf(tool)
        return {
          target,
          scopes,
          client: configuredClient ?? (yield* makeClient(target.server, addresses))
        }
      }).pipe(Effect.tapError(logFailure({ tenantId }, tool.id)), Effect.mapError(toRequestError))
      const { signIn, url } = yield* Effect.mapError(
        authorization.begin(target, client, addresses.redirectUri),
        toRequestError
      )
      const isConfigured = auth.clientId !== undefined
      const flow = yield* Effect.orDie(
        encodeFlow({
          ...signIn,
          agentId: tool.agentId,
          basis,
          server: target.server,
          resource: target.resource,
          clientId: client.clientId,
          scopes,
          clientSecret:
            isConfigured || client.clientSecret === null ? null : Redacted.value(client.clientSecret)
        })
      )
      yield* store.begin({ tenantId }, tool.id, {
        session,
        state: yield* credentials.fingerprint(Redacted.make(signIn.state)),
        flow: yield* box.seal("tool-sign-in", flow),
        lifetime: signInLifetime
      })
      return url
    })

    /**
     * Connects the tool. The result is the sign-in page for the person of `session`; null when the tool is connected
     * without a person. CONFLICT when it needs a person and there is no session.
     */
    const begin = Effect.fn("ToolConnections.begin")(function* (
      { tenantId }: TenantScope,
      id: ToolId,
      session: Redacted.Redacted | null,
      addresses: ClientAddresses
    ) {
      const tool = yield* findTool({ tenantId }, id)
      if (tool.definition.auth.kind !== "oauth") return yield* noOAuth()
      if (isMachine(tool.definition)) {
        yield* tokens.requestNow({ tenantId }, tool).pipe(
          Effect.tapError(logFailure({ tenantId }, id)),
          Effect.mapError(toRequestError),
          limiter.withPermit(tenantId),
          Effect.catchTag("LimitReached", () => Effect.fail(tooManyConnecting()))
        )
        return null
      }
      if (session === null) return yield* noSession()
      const fingerprint = yield* credentials.fingerprint(session)
      return yield* beginSignIn({ tenantId }, tool, fingerprint, addresses).pipe(
        limiter.withPermit(tenantId),
        Effect.catchTag("LimitReached", () => Effect.fail(tooManyConnecting()))
      )
    })

    const finishSignIn = Effect.fn("ToolConnections.finishSignIn")(function* (
      { tenantId }: TenantScope,
      session: Redacted.Redacted,
      answer: ToolAuthorizationResponse,
      redirectUri: string
    ) {
      const scope = { tenantId }
      const state = yield* credentials.fingerprint(Redacted.make(answer.state ?? ""))
      const taken = yield* store.takeSignIn(scope, yield* credentials.fingerprint(session), state)
      const unknownSignIn = new ToolSignInRefused({ problem: "retry", agentId: null })
      if (Option.isNone(taken)) return yield* unknownSignIn
      const { isOver, toolId } = taken.value
      const text = yield* box.open("tool-sign-in", taken.value.flow)
      const flow = Option.flatMap(text, decodeFlow)
      if (Option.isNone(flow)) return yield* unknownSignIn
      const { agentId, basis, clientId, clientSecret, resource, scopes, server, verifier } = flow.value
      const refused = (problem: ToolSignInProblem) => new ToolSignInRefused({ problem, agentId })
      const tool = Option.getOrNull(yield* tools.find(scope, toolId))
      // A sign-in for an earlier definition of the tool cannot connect the present one.
      if (isOver || tool === null || connectionBasis(tool.definition) !== basis)
        return yield* refused("retry")
      const receiveTokens = Effect.gen(function* () {
        const client = (yield* tokens.clientOf(tool)) ?? toolClient(clientId, clientSecret)
        const signIn = { state: flow.value.state, verifier }
        return yield* authorization.finish({ server, resource }, client, redirectUri, signIn, { ...answer })
      }).pipe(
        Effect.tapError(logFailure(scope, toolId)),
        Effect.mapError(({ reason }) => refused(problemOfReason[reason]))
      )
      const isConnected = yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(receiveTokens), (fresh) =>
          tokens.connect(scope, tool, { basis, server, resource, clientId, clientSecret }, scopes, fresh)
        )
      )
      return isConnected ? { agentId, toolId } : yield* refused("retry")
    })

    /** Ends a sign-in that the same session began. Fails with ToolSignInRefused, which the dashboard explains. */
    const finish = Effect.fn("ToolConnections.finish")(function* (
      { tenantId }: TenantScope,
      session: Redacted.Redacted,
      answer: ToolAuthorizationResponse,
      redirectUri: string
    ) {
      return yield* finishSignIn({ tenantId }, session, answer, redirectUri).pipe(
        withOwner(tenantId),
        limiter.withPermit(tenantId),
        Effect.catchTag("LimitReached", () =>
          Effect.fail(new ToolSignInRefused({ problem: "retry", agentId: null }))
        )
      )
    })

    /** Removes the tool's tokens, and revokes them where the authorization server can. */
    const disconnect = Effect.fn("ToolConnections.disconnect")(function* (scope: TenantScope, id: ToolId) {
      const tool = yield* findTool(scope, id)
      if (!(yield* tokens.disconnect(scope, tool))) return yield* noConnection()
    })

    return { begin, finish, disconnect } as const
  })
}) {}
