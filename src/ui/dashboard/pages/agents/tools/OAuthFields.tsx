/** The fields of a tool's OAuth credential. */
import type { ReactNode } from "react"
import type { Grant, Tool, ToolInput } from "../../../api/Tools.ts"
import { Select, TextField } from "../../../components/Field.tsx"
import { texts, useText } from "../../../text/Language.tsx"

const words = texts(
  {
    grant: "Who signs in",
    authorization_code: "A person, with Connect in the list",
    client_credentials: "Nobody: the client itself",
    clientId: "Client ID",
    clientIdHelp: "Empty: Spoke identifies itself to the authorization server.",
    issuer: "Authorization server",
    issuerHelp: "Its https address. The client's secret is sent there only.",
    scopes: "Scopes",
    scopesHelp: "With spaces between them. Empty: those that the server asks for."
  },
  {
    grant: "Wer sich anmeldet",
    authorization_code: "Ein Mensch, mit Verbinden in der Liste",
    client_credentials: "Niemand: der Client selbst",
    clientId: "Client-ID",
    clientIdHelp: "Leer: Spoke weist sich selbst beim Autorisierungsserver aus.",
    issuer: "Autorisierungsserver",
    issuerHelp: "Seine https-Adresse. Nur dorthin geht das Geheimnis des Clients.",
    scopes: "Berechtigungen",
    scopesHelp: "Mit Leerzeichen dazwischen. Leer: die der Server verlangt."
  }
)

const grants: ReadonlyArray<Grant> = ["authorization_code", "client_credentials"]

/** Values of the fields, as typed. */
export interface OAuthValues {
  readonly grant: Grant
  readonly clientId: string
  readonly issuer: string
  readonly scopes: string
}

export const emptyOAuth: OAuthValues = { grant: "authorization_code", clientId: "", issuer: "", scopes: "" }

export const oauthValuesOf = ({ clientId, grant, issuer, scopes }: Tool["auth"]): OAuthValues => ({
  grant: grant ?? emptyOAuth.grant,
  clientId: clientId ?? "",
  issuer: issuer ?? "",
  scopes: (scopes ?? []).join(" ")
})

/** The OAuth members of the credential, as they are sent. */
export const oauthOf = ({
  clientId,
  grant,
  issuer,
  scopes
}: OAuthValues): Partial<NonNullable<ToolInput["auth"]>> => {
  const names = scopes.split(/\s+/u).filter((name) => name !== "")
  return {
    ...(grant === "client_credentials" ? { grant } : {}),
    ...(clientId === "" ? {} : { clientId }),
    ...(issuer === "" ? {} : { issuer }),
    ...(names.length === 0 ? {} : { scopes: names })
  }
}

interface Props {
  readonly value: OAuthValues
  readonly onChange: (values: Partial<OAuthValues>) => void
  readonly errorOf: (path: "auth.clientId" | "auth.issuer" | "auth.scopes") => string | undefined
  /** Shows the stored value of a field that another session has changed. */
  readonly conflictOf: (name: keyof OAuthValues) => ReactNode
}

export const OAuthFields = ({ errorOf, onChange: change, conflictOf, value }: Props) => {
  const t = useText(words)
  return (
    <>
      <Select
        label={t.grant}
        options={grants.map((one) => [one, t[one]] as const)}
        value={value.grant}
        onChange={(grant) => change({ grant })}
      />
      {conflictOf("grant")}
      <TextField
        label={t.clientId}
        help={t.clientIdHelp}
        value={value.clientId}
        onChange={(clientId) => change({ clientId })}
        error={errorOf("auth.clientId")}
      />
      {conflictOf("clientId")}
      <TextField
        label={t.issuer}
        help={t.issuerHelp}
        value={value.issuer}
        onChange={(issuer) => change({ issuer })}
        error={errorOf("auth.issuer")}
      />
      {conflictOf("issuer")}
      <TextField
        label={t.scopes}
        help={t.scopesHelp}
        value={value.scopes}
        onChange={(scopes) => change({ scopes })}
        error={errorOf("auth.scopes")}
      />
      {conflictOf("scopes")}
    </>
  )
}
