/** The team, for the dashboard: viewers read, admins write, only owners change owners. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  Conflict,
  Forbidden,
  NotFound,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../../../domain/Errors.ts"
import { UserId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { ChoosePassword, CreateUser, Invitation, Member, PatchUser } from "../../../domain/accounts/Team.ts"
import { managed, OpenReason, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { SameOrigin } from "./SameOrigin.ts"

const path = Schema.Struct({ id: UserId })
export const OneMember = Schema.Struct({ user: Member })
/** The only responses with an invitation's token. */
export const InvitedMember = Schema.Struct({ user: Member, invitation: Schema.NullOr(Invitation) })

export const MemberPage = Schema.Struct({ users: Schema.Array(Member), nextCursor })

const list = HttpApiEndpoint.get("list", "/users")
  .setUrlParams(pageParams)
  .addSuccess(success(MemberPage))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "viewer")

const create = HttpApiEndpoint.post("create", "/users")
  .setPayload(CreateUser)
  .addSuccess(success(InvitedMember), { status: 201 })
  .addError(failure(ValidationError, Forbidden, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/**
 * Makes a new invitation to choose a password; the previous one is void. 409 where the team signs in by single sign-on
 * only.
 */
const invite = HttpApiEndpoint.post("invite", "/users/:id/invitation")
  .setPath(path)
  .addSuccess(success(InvitedMember), { status: 201 })
  .addError(failure(ValidationError, Forbidden, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** 409 when the last owner would be demoted. */
const patch = HttpApiEndpoint.patch("patch", "/users/:id")
  .setPath(path)
  .setPayload(PatchUser)
  .addSuccess(success(OneMember))
  .addError(failure(ValidationError, Forbidden, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Ends the user's sessions at once. 409 for the last owner. */
const remove = HttpApiEndpoint.del("remove", "/users/:id")
  .setPath(path)
  .addSuccess(success(Schema.Struct({ id: UserId, deleted: Schema.Literal(true) })))
  .addError(failure(ValidationError, Forbidden, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const team = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(create).add(invite).add(patch).add(remove)

export class UsersApi extends team("users").prefix("/api").middleware(SessionAuth) {}

export class ManagedUsersApi extends managed(team("managedUsers"), "team") {}

/** Uses up the invitation. 401 when it was used or replaced, or has expired. */
const choosePassword = HttpApiEndpoint.post("choosePassword", "/api/auth/password")
  .setPayload(ChoosePassword)
  .addSuccess(success(OneMember))
  .addError(failure(Unauthorized, ValidationError, ServiceUnavailable))
  .middleware(SameOrigin)
  .annotate(OpenReason, "An invited user chooses the password here.")

export class PasswordsApi extends HttpApiGroup.make("passwords").add(choosePassword) {}
