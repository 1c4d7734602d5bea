/** End users: the people who write to the agents, with export and erasure. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import type { EndUserPage } from "../../../http/hosted/conversations/EndUsersApi.ts"
import { call, firstPage } from "./Client.ts"

export const people = (externalId: string) =>
  infiniteQueryOptions({
    queryKey: ["people", externalId],
    queryFn: ({ pageParam, signal }) =>
      call<typeof EndUserPage.Encoded>("GET", "/api/end-users", {
        query: { limit: 50, cursor: pageParam, externalId },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

/** The address of a download with all stored data about the person. */
export const exportAddress = (id: string) => `/api/end-users/${id}/export`

export const erasePerson = (id: string) => call("DELETE", `/api/end-users/${id}`)
