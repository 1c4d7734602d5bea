/** End users: the people who write to the agents, with export and erasure. */
import type { EndUserPage } from "../../../http/hosted/conversations/EndUsersApi.ts"
import { call, pagesOf } from "./Client.ts"

export const people = (externalId: string) =>
  pagesOf<typeof EndUserPage.Encoded>(["people", externalId], "/api/end-users", { limit: 50, externalId })

/** The address of a download with all stored data about the person. */
export const exportAddress = (id: string) => `/api/end-users/${id}/export`

export const erasePerson = (id: string) => call("DELETE", `/api/end-users/${id}`)
