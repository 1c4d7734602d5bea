/** Open sessions of the signed-in user. Owners can also see those of other members. */
import { queryOptions } from "@tanstack/react-query"
import type { Session as Declared } from "../../../domain/accounts/Session.ts"
import type { SessionList } from "../../../http/hosted/accounts/OpenSessionsApi.ts"
import { call } from "./Client.ts"

export type OpenSession = typeof Declared.Encoded

const base = (userId: string | null) =>
  userId === null ? "/api/auth/sessions" : `/api/users/${userId}/sessions`

/** `userId` is null for the signed-in user. */
export const openSessions = (userId: string | null) =>
  queryOptions({
    queryKey: ["open-sessions", userId],
    queryFn: async ({ signal }) =>
      (await call<typeof SessionList.Encoded>("GET", base(userId), { signal })).sessions
  })

export const endSession = (userId: string | null, id: string) => call("DELETE", `${base(userId)}/${id}`)

/** Ends all sessions except the current one. */
export const endOtherSessions = (userId: string | null) => call("DELETE", base(userId))
