/** The token in the header `authorization`; empty when it has none. */
export const bearerToken = (authorization: string | undefined): string =>
  /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? ""
