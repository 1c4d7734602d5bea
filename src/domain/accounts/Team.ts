/** The people of a tenant, as its admins manage them. */
import * as Schema from "effect/Schema"
import { Role } from "./Access.ts"
import { Email, NewPassword, User } from "./Account.ts"

/** A user in the team's list. `invited` until they have chosen a password or signed in at a provider. */
export const Member = Schema.Struct({
  ...User.fields,
  invited: Schema.Boolean,
  /** False for a user whom the provider has deactivated, who cannot sign in. */
  active: Schema.Boolean,
  createdAt: Schema.DateTimeUtc
})
export type Member = typeof Member.Type

/** Lets its holder choose the user's password, once. It is shown only when it is created. */
export const Invitation = Schema.Struct({
  token: Schema.Redacted(Schema.String),
  expiresAt: Schema.DateTimeUtc
})
export type Invitation = typeof Invitation.Type

/** Body of `POST /api/users`. Without `password` the answer contains an invitation. */
export const CreateUser = Schema.Struct({
  email: Email,
  role: Role,
  password: Schema.optionalWith(NewPassword, { exact: true })
})
export type CreateUser = typeof CreateUser.Type

/** Body of `PATCH /api/users/:id`. */
export const PatchUser = Schema.Struct({ role: Role })
export type PatchUser = typeof PatchUser.Type

/** Body of `POST /api/auth/password`. */
export const ChoosePassword = Schema.Struct({
  token: Schema.Redacted(Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200))),
  password: NewPassword
})
export type ChoosePassword = typeof ChoosePassword.Type
