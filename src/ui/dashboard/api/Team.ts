/** The people who work with the dashboard. */
import type {
  ChoosePassword,
  CreateUser,
  Invitation as Made,
  Member as Declared,
  PatchUser
} from "../../../domain/accounts/Team.ts"
import type { InvitedMember, MemberPage, OneMember } from "../../../http/hosted/accounts/UsersApi.ts"
import { call, pagesOf } from "./Client.ts"
import type { Role } from "./Session.ts"

export type Member = typeof Declared.Encoded
export type Invitation = typeof Made.Encoded

export const members = pagesOf<typeof MemberPage.Encoded>(["team"], "/api/users", { limit: 100 })

export const invite = (email: string, role: Role) =>
  call<typeof InvitedMember.Encoded, typeof CreateUser.Encoded>("POST", "/api/users", {
    body: { email, role }
  })

export const inviteAgain = (id: string) =>
  call<typeof InvitedMember.Encoded>("POST", `/api/users/${id}/invitation`)

export const changeRole = (id: string, role: Role) =>
  call<unknown, typeof PatchUser.Encoded>("PATCH", `/api/users/${id}`, { body: { role } })

export const removeMember = (id: string) => call("DELETE", `/api/users/${id}`)

export const choosePassword = (token: string, password: string) =>
  call<typeof OneMember.Encoded, typeof ChoosePassword.Encoded>("POST", "/api/auth/password", {
    body: { token, password }
  })
