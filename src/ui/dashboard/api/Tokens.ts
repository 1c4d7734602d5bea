/** Access tokens of the management interface. */
import type { AccessToken, CreateToken } from "../../../domain/accounts/AccessToken.ts"
import type { MadeToken, TokenPage } from "../../../http/hosted/accounts/TokensApi.ts"
import { call, pagesOf } from "./Client.ts"

export type Token = typeof AccessToken.Encoded
export type NewToken = typeof CreateToken.Encoded

export const tokens = pagesOf<typeof TokenPage.Encoded>(["tokens"], "/api/tokens", { limit: 100 })

export const createToken = (body: NewToken) =>
  call<typeof MadeToken.Encoded, NewToken>("POST", "/api/tokens", { body })

export const revokeToken = (id: string) => call("DELETE", `/api/tokens/${id}`)
