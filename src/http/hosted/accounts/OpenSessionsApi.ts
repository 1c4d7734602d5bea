/** Open sessions: the caller's own, and for owners those of members. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Session, SignInId } from "../../../domain/accounts/Session.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { UserId } from "../../../domain/Ids.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

/** Last used first; at most a hundred. */
export const SessionList = Schema.Struct({ sessions: Schema.Array(Session) })
const Ended = success(Schema.Struct({ id: SignInId, deleted: Schema.Literal(true) }))
/** The number of ended sessions. */
const EndedOthers = success(Schema.Struct({ ended: Schema.Int }))

const own = HttpApiEndpoint.get("own", "/api/auth/sessions")
  .addSuccess(success(SessionList))
  .annotate(RequiredRole, "viewer")

/** Ends all of the caller's sessions except the current one. */
const endOthers = HttpApiEndpoint.del("endOthers", "/api/auth/sessions")
  .addSuccess(EndedOthers)
  .addError(failure(NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

const end = deletion("end", "/api/auth/sessions/:id", SignInId).annotate(RequiredRole, "viewer")

export class OpenSessionsApi extends HttpApiGroup.make("openSessions")
  .add(own)
  .add(endOthers)
  .add(end)
  .middleware(SessionAuth) {}

const member = Schema.Struct({ id: UserId })

const list = HttpApiEndpoint.get("list", "/users/:id/sessions")
  .setPath(member)
  .addSuccess(success(SessionList))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "owner")

/** Ends all sessions of the member except the caller's own. */
const endAll = HttpApiEndpoint.del("endAll", "/users/:id/sessions")
  .setPath(member)
  .addSuccess(EndedOthers)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

const endOne = HttpApiEndpoint.del("endOne", "/users/:id/sessions/:session")
  .setPath(Schema.Struct({ id: UserId, session: SignInId }))
  .addSuccess(Ended)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

const ofMembers = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(list).add(endAll).add(endOne)

export class MemberSessionsApi extends ofMembers("memberSessions").prefix("/api").middleware(SessionAuth) {}

export class ManagedMemberSessionsApi extends managed(ofMembers("managedMemberSessions"), "team") {}
