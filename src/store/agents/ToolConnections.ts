/** OAuth connections of tools, and the sign-ins that lead to them. The caller seals tokens. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { AuthorizationServer } from "../../capabilities/IdentityProvider.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { StoredConnectionState, ToolScopes } from "../../domain/agents/ToolConnection.ts"
import { ToolId } from "../../domain/agents/Tool.ts"
import { jsonbOf } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  /** The settings of the tool that the connection was made for: `connectionBasis`. */
  basis: Schema.String,
  state: StoredConnectionState,
  server: Schema.NullOr(AuthorizationServer),
  resource: Schema.NullOr(Schema.String),
  clientId: Schema.NullOr(Schema.String),
  scopes: Schema.NullOr(ToolScopes),
  /** Sealed. */
  tokens: Schema.NullOr(Schema.String),
  version: Schema.Int,
  /** Whether a process requests a token now. */
  isLeased: Schema.Boolean,
  /** Whether the access token ends soon, or has ended. */
  isEnding: Schema.Boolean,
  isOver: Schema.Boolean,
  /** Whether the last change is old enough for another attempt without a person. */
  isOld: Schema.Boolean
})
export type StoredConnection = typeof Row.Type

export interface NewConnection {
  readonly basis: string
  readonly server: AuthorizationServer
  readonly resource: string
  readonly clientId: string
  readonly scopes: ToolScopes
  /** Sealed. */
  readonly tokens: string
  /** How long the access token lasts; null: not known. */
  readonly lastsSeconds: number | null
}

const SignIn = Schema.Struct({ toolId: ToolId, flow: Schema.String, isOver: Schema.Boolean })

const serverJson = jsonbOf(AuthorizationServer)
const scopesJson = jsonbOf(ToolScopes)

/** A new token is requested this long before the old one expires. */
const renewalMargin = "60 seconds"
/** After a refusal, the time until another attempt without a person. */
const refusalRetryDelay = "60 seconds"
/** If a process dies while it requests a token, others wait for this time. */
const leaseSeconds = 45

export class ToolConnectionStore extends Effect.Service<ToolConnectionStore>()(
  "store/agents/ToolConnections",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const serverOf = ({ scopes, server }: NewConnection) =>
        sql`${serverJson(server)}::jsonb || jsonb_build_object('scopes', ${scopesJson(scopes)}::jsonb)`

      const columns = sql`
        basis, state, server, resource, client_id as "clientId", server -> 'scopes' as scopes, tokens, version,
        coalesce(lease_until > now(), false) as "isLeased",
        coalesce(expires_at <= now() + ${renewalMargin}::interval, false) as "isEnding",
        coalesce(expires_at <= now(), false) as "isOver",
        updated_at <= now() - ${refusalRetryDelay}::interval as "isOld"`

      const find = ({ tenantId }: TenantScope, id: ToolId): Effect.Effect<Option.Option<StoredConnection>> =>
        sql`select ${columns} from tool_connections where tenant_id = ${tenantId} and tool_id = ${id}`.pipe(
          Rows.first(Row)
        )

      /**
       * Replaces the tool's connection. A running renewal of the old one has no effect. False when there is no such
       * tool. A tool that is being deleted is waited for.
       */
      const connect = Effect.fn("ToolConnectionStore.connect")(
        function* ({ tenantId }: TenantScope, id: ToolId, made: NewConnection) {
          yield* sql`select 1 from tools where tenant_id = ${tenantId} and id = ${id} for key share`
          return yield* sql`
          insert into tool_connections (tenant_id, tool_id, basis, state, server, resource, client_id, tokens, expires_at, version)
          select tenant_id, id, ${made.basis}, 'connected', ${serverOf(made)}, ${made.resource}, ${made.clientId}, ${made.tokens},
            now() + make_interval(secs => ${made.lastsSeconds}::float8), 1
          from tools where tenant_id = ${tenantId} and id = ${id}
          on conflict (tenant_id, tool_id) do update set basis = excluded.basis, state = 'connected', server = excluded.server,
            resource = excluded.resource, client_id = excluded.client_id, tokens = excluded.tokens,
            expires_at = excluded.expires_at, version = tool_connections.version + 1, lease_token = null, lease_until = null,
            connected_at = now(), updated_at = now()
          returning tool_id`.pipe(Rows.any)
        },
        sql.withTransaction,
        Effect.orDie
      )

      /**
       * Takes the right to request a new token. False when another process has it, or the connection was changed since
       * `version`; null: there was none.
       */
      const lease = (
        { tenantId }: TenantScope,
        id: ToolId,
        basis: string,
        version: number | null,
        token: string
      ) =>
        (version === null
          ? sql`
          insert into tool_connections (tenant_id, tool_id, basis, lease_token, lease_until)
          select tenant_id, id, ${basis}, ${token}, now() + make_interval(secs => ${leaseSeconds})
          from tools where tenant_id = ${tenantId} and id = ${id}
          on conflict (tenant_id, tool_id) do nothing returning tool_id`
          : sql`
          update tool_connections set lease_token = ${token}, lease_until = now() + make_interval(secs => ${leaseSeconds})
          where tenant_id = ${tenantId} and tool_id = ${id} and version = ${version}
            and (lease_until is null or lease_until <= now())
          returning tool_id`
        ).pipe(Rows.any)

      /** Stores the new tokens, and ends the lease. False when the lease is no longer this one. */
      const settle = ({ tenantId }: TenantScope, id: ToolId, token: string, made: NewConnection) =>
        sql`
          update tool_connections set basis = ${made.basis}, state = 'connected', resource = ${made.resource},
            server = ${serverOf(made)}, client_id = ${made.clientId}, tokens = ${made.tokens},
            expires_at = now() + make_interval(secs => ${made.lastsSeconds}::float8),
            version = version + 1, lease_token = null, lease_until = null, updated_at = now()
          where tenant_id = ${tenantId} and tool_id = ${id} and lease_token = ${token} returning tool_id`.pipe(
          Rows.any
        )

      /** Ends the lease. With `refused`, the basis that the server refused, the tokens are removed. */
      const release = ({ tenantId }: TenantScope, id: ToolId, token: string, refused: string | null = null) =>
        sql`
        update tool_connections set lease_token = null, lease_until = null
          ${
            refused === null
              ? sql``
              : sql`, state = 'refused', basis = ${refused}, tokens = null, expires_at = null, version = version + 1,
                  updated_at = now()`
          }
        where tenant_id = ${tenantId} and tool_id = ${id} and lease_token = ${token}`.pipe(Rows.none)

      /** Stores the scopes after the resource required others, unless there is a newer token than that of `version`. */
      const setScopes = ({ tenantId }: TenantScope, id: ToolId, version: number, scopes: ToolScopes) =>
        sql`
          update tool_connections set server = server || jsonb_build_object('scopes', ${scopesJson(scopes)}::jsonb)
          where tenant_id = ${tenantId} and tool_id = ${id} and version = ${version} and server is not null`.pipe(
          Rows.none
        )

      /** Refuses the connection if it has not changed since `version`. */
      const refuse = ({ tenantId }: TenantScope, id: ToolId, version: number) =>
        sql`
        update tool_connections set state = 'refused', tokens = null, expires_at = null, version = version + 1,
          updated_at = now()
        where tenant_id = ${tenantId} and tool_id = ${id} and version = ${version}`.pipe(Rows.none)

      /** Deletes and returns it; none when there was none. */
      const take = ({ tenantId }: TenantScope, id: ToolId): Effect.Effect<Option.Option<StoredConnection>> =>
        sql`
          delete from tool_connections where tenant_id = ${tenantId} and tool_id = ${id} returning ${columns}`.pipe(
          Rows.first(Row)
        )

      /** Stores a sign-in of the session for the tool instead of its previous one, and deletes expired ones. */
      const begin = (
        { tenantId }: TenantScope,
        id: ToolId,
        signIn: {
          readonly session: Uint8Array
          readonly state: Uint8Array
          readonly flow: string
          readonly lifetime: Duration.Duration
        }
      ) =>
        sql`
          with expired as (delete from tool_sign_ins where tenant_id = ${tenantId} and expires_at <= now())
          insert into tool_sign_ins (tenant_id, tool_id, session_hash, state_hash, flow, expires_at)
          select s.tenant_id, t.id, s.token_hash, ${signIn.state}::bytea, ${signIn.flow},
            now() + make_interval(secs => ${Duration.toSeconds(signIn.lifetime)})
          from user_sessions s join tools t on t.tenant_id = s.tenant_id and t.id = ${id}
          where s.tenant_id = ${tenantId} and s.token_hash = ${signIn.session}
          on conflict (tenant_id, tool_id, session_hash) do update
            set state_hash = excluded.state_hash, flow = excluded.flow, expires_at = excluded.expires_at`.pipe(
          Rows.none
        )

      /** Deletes and returns the sign-in of that state, if the session began it. */
      const takeSignIn = ({ tenantId }: TenantScope, session: Uint8Array, state: Uint8Array) =>
        sql`
          delete from tool_sign_ins
          where tenant_id = ${tenantId} and session_hash = ${session} and state_hash = ${state}
          returning tool_id as "toolId", flow, expires_at <= now() as "isOver"`.pipe(Rows.first(SignIn))

      return { find, connect, lease, settle, release, setScopes, refuse, take, begin, takeSignIn } as const
    })
  }
) {}
