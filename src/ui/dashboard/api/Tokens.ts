/** Access tokens of the management interface. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import type { AccessToken, CreateToken } from "../../../domain/accounts/AccessToken.ts"
import type { MadeToken, TokenPage } from "../../../http/hosted/accounts/TokensApi.ts"
import { call, firstPage } from "./Client.ts"

export type Token = typeof AccessToken.Encoded
export type NewToken = typeof CreateToken.Encoded

export const tokens = infiniteQueryOptions({
  queryKey: ["tokens"],
  queryFn: ({ pageParam, signal }) =>
    call<typeof TokenPage.Encoded>("GET", "/api/tokens", {
      query: { limit: 100, cursor: pageParam },
      signal
    }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})

export const createToken = (body: NewToken) =>
  call<typeof MadeToken.Encoded, NewToken>("POST", "/api/tokens", { body })

export const revokeToken = (id: string) => call("DELETE", `/api/tokens/${id}`)
