/** Who is signed in. */
import { queryOptions } from "@tanstack/react-query"
import { ApiError, call } from "./Client.ts"

export type Role = "owner" | "admin" | "agent" | "viewer"

export interface User {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly tenantId: string
}

const rank: Record<Role, number> = { owner: 3, admin: 2, agent: 1, viewer: 0 }

/** True when `role` is `least` or above it. The service decides; this only hides what it would refuse. */
export const atLeast = (role: Role, least: Role): boolean => rank[role] >= rank[least]

/** Null when nobody is. */
export const session = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) =>
    call<{ readonly user: User }>("GET", "/api/auth/session", { signal }).then(
      ({ user }) => user,
      (problem: unknown) => {
        if (problem instanceof ApiError && problem.status === 401) return null
        throw problem
      }
    ),
  staleTime: 60_000
})

export const signIn = (email: string, password: string) =>
  call<{ readonly user: User }>("POST", "/api/auth/login", { body: { email, password } })

export const signOut = () => call("POST", "/api/auth/logout")
