/** The people who work with the dashboard. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"
import type { Role } from "./Session.ts"

export interface Member {
  readonly id: string
  readonly email: string
  readonly role: Role
  /** Until a password was chosen. */
  readonly invited: boolean
  readonly createdAt: string
}

interface MemberPage {
  readonly users: ReadonlyArray<Member>
  readonly nextCursor: string | null
}

/** Shown once. */
export interface Invitation {
  readonly token: string
  readonly expiresAt: string
}

interface Invited {
  readonly user: Member
  readonly invitation: Invitation | null
}

export const members = infiniteQueryOptions({
  queryKey: ["team"],
  queryFn: ({ pageParam, signal }) =>
    call<MemberPage>("GET", "/api/users", { query: { limit: 100, cursor: pageParam }, signal }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})

export const invite = (email: string, role: Role) =>
  call<Invited>("POST", "/api/users", { body: { email, role } })

export const inviteAgain = (id: string) => call<Invited>("POST", `/api/users/${id}/invitation`)

export const changeRole = (id: string, role: Role) => call("PATCH", `/api/users/${id}`, { body: { role } })

export const removeMember = (id: string) => call("DELETE", `/api/users/${id}`)

export const choosePassword = (token: string, password: string) =>
  call<{ readonly user: Member }>("POST", "/api/auth/password", { body: { token, password } })
