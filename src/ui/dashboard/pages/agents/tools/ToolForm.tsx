/** Form to create and change a tool. */
import { useQueryClient } from "@tanstack/react-query"
import {
  type AuthKind,
  authKinds,
  type Binding,
  createTool,
  type Method,
  methods,
  patchTool,
  type Tool,
  type ToolInput,
  tools
} from "../../../api/Tools.ts"
import { Select, TextArea, TextField } from "../../../components/Field.tsx"
import { ConflictingValue } from "../../../forms/DraftNotes.tsx"
import { DialogActions } from "../../../forms/DialogActions.tsx"
import { Form } from "../../../forms/Form.tsx"
import { parseJsonObject } from "../../../forms/json.ts"
import { useDraft } from "../../../forms/useDraft.ts"
import { useSaveAndClose } from "../../../forms/useSaveAndClose.ts"
import { useIssues } from "../../../forms/useIssues.ts"
import { Parameters } from "./Parameters.tsx"
import { emptyOAuth, OAuthFields, oauthOf, type OAuthValues, oauthValuesOf } from "./OAuthFields.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { texts, useText } from "../../../text/Language.tsx"

const words = texts(
  {
    add: "New tool",
    edit: (name: string) => `Tool ${name}`,
    kind: "What it is",
    http: "HTTP address",
    mcp: "MCP server",
    nameHelp: "Letters, digits and _, as the model sees it.",
    description: "What it does",
    descriptionHelp: "The model decides by this when to call it.",
    method: "Method",
    url: "Address",
    urlHelp: "{name} stands for an argument of the model or a variable.",
    bindings: "Variables",
    bindingsHelp:
      "One a line: /customer/id → path:id takes a value of toolContext that the model never sees.",
    auth: "Credential",
    none: "None",
    bearer: "Bearer token",
    header: "Header",
    basic: "User and password",
    headerName: "Name of the header",
    oauth: "OAuth",
    secret: "Secret",
    secretHelp: "Kept encrypted, never shown again.",
    keepHelp: "Empty: the stored one stays.",
    basicHelp: "user:password. Kept encrypted, never shown again.",
    slot: "Slot",
    slotHelp: "Instead of a secret: the name under which each request brings its own credential.",
    badJson: "This is not JSON.",
    badBinding: "Write each as: /pointer → path:name, query:name, header:Name or body:/pointer."
  },
  {
    add: "Neues Werkzeug",
    edit: (name: string) => `Werkzeug ${name}`,
    kind: "Was es ist",
    http: "HTTP-Adresse",
    mcp: "MCP-Server",
    nameHelp: "Buchstaben, Ziffern und _, so sieht es das Modell.",
    description: "Was es tut",
    descriptionHelp: "Danach entscheidet das Modell, wann es das Werkzeug ruft.",
    method: "Methode",
    url: "Adresse",
    urlHelp: "{name} steht für ein Argument des Modells oder eine Variable.",
    bindings: "Variablen",
    bindingsHelp:
      "Je Zeile eine: /customer/id → path:id nimmt einen Wert aus toolContext, den das Modell nie sieht.",
    auth: "Zugang",
    none: "Keiner",
    bearer: "Bearer-Token",
    header: "Header",
    basic: "Benutzer und Passwort",
    headerName: "Name des Headers",
    oauth: "OAuth",
    secret: "Geheimnis",
    secretHelp: "Wird verschlüsselt aufbewahrt und nie wieder gezeigt.",
    keepHelp: "Leer: das hinterlegte bleibt.",
    basicHelp: "benutzer:passwort. Wird verschlüsselt aufbewahrt und nie wieder gezeigt.",
    slot: "Slot",
    slotHelp: "Statt eines Geheimnisses: der Name, unter dem jede Anfrage ihren eigenen Zugang mitbringt.",
    badJson: "Das ist kein JSON.",
    badBinding: "Jede so schreiben: /Zeiger → path:Name, query:Name, header:Name oder body:/Zeiger."
  }
)

const emptyParameters = '{\n  "type": "object",\n  "properties": {}\n}'

const isTarget = (text: string): text is Binding["to"] => /^(?:(?:header|query|path):|body:\/)/.test(text)

/** Null if a line is not a binding. */
const bindingsOf = (text: string): ReadonlyArray<Binding> | null => {
  const matches = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^\s*(\/\S*)\s*(?:→|->)\s*(\S+)\s*$/.exec(line))
  const bindings = matches.flatMap((match) => {
    const [, from, to] = match ?? []
    return from === undefined || to === undefined || !isTarget(to) ? [] : [{ from, to }]
  })
  return bindings.length === matches.length ? bindings : null
}

/** Values of the fields, as typed. */
interface ToolFields extends OAuthValues {
  readonly kind: "http" | "mcp"
  readonly name: string
  readonly description: string
  readonly method: Method
  readonly url: string
  readonly parameters: string
  readonly bindings: string
  readonly auth: AuthKind
  readonly header: string
  readonly secret: string
  readonly slot: string
  readonly [field: string]: string
}

const emptyForm: ToolFields = {
  kind: "http",
  name: "",
  description: "",
  method: "GET",
  url: "",
  parameters: emptyParameters,
  bindings: "",
  auth: "none",
  header: "",
  secret: "",
  slot: "",
  ...emptyOAuth
}

const fieldsOf = ({
  auth,
  bindings = [],
  description = "",
  http,
  mcp,
  name,
  parameters = {}
}: Tool): ToolFields => ({
  kind: mcp === undefined ? "http" : "mcp",
  name,
  description,
  method: http?.method ?? "GET",
  url: http?.url ?? mcp?.url ?? "",
  parameters: JSON.stringify(parameters, null, 2),
  bindings: bindings.map(({ from, to }) => `${from} → ${to}`).join("\n"),
  auth: auth.kind,
  header: auth.header ?? "",
  secret: "",
  slot: auth.slot ?? "",
  ...oauthValuesOf(auth)
})

/** The credential as it is sent. */
const authOf = (value: ToolFields): NonNullable<ToolInput["auth"]> => {
  const { auth, header, secret, slot } = value
  if (auth === "none") return { kind: auth }
  return {
    kind: auth,
    ...(auth === "oauth" ? oauthOf(value) : {}),
    ...(auth === "header" && header !== "" ? { header } : {}),
    ...(auth === "oauth" || slot === "" ? {} : { slot }),
    ...(secret === "" ? {} : { secret })
  }
}

/** Paths of the validation issues that the form shows at fields. */
const fieldPaths = [
  "name",
  "description",
  "http.url",
  "http",
  "mcp",
  "parameters",
  "bindings",
  "auth.header",
  "auth.secret",
  "auth.slot",
  "auth.clientId",
  "auth.issuer",
  "auth.scopes",
  "auth"
] as const

interface Props {
  readonly agentId: string
  /** Null for a new one. */
  readonly tool: Tool | null
  readonly onClose: () => void
}

export const ToolForm = ({ agentId, tool, onClose }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft<ToolFields>({
    name: tool === null ? `tool.${agentId}` : `tool.${tool.id}`,
    title: tool === null ? t.add : t.edit(tool.name),
    stored: tool === null ? emptyForm : fieldsOf(tool),
    secretFields: ["secret"]
  })
  const { change, value } = draft
  const { auth, kind } = value
  const schema = parseJsonObject(value.parameters)
  const parsedBindings = bindingsOf(value.bindings)

  const save = useSaveAndClose({
    save: () => {
      const { description, method, name, url } = value
      const body: ToolInput = {
        name,
        description,
        ...(kind === "http"
          ? { http: { ...tool?.http, method, url }, parameters: schema ?? {}, bindings: parsedBindings ?? [] }
          : { mcp: { url } }),
        auth: authOf(value)
      }
      return tool === null ? createTool(agentId, body) : patchTool(tool.id, tool.version, body)
    },
    refresh: () => queries.invalidateQueries({ queryKey: tools(agentId).queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(save.error, fieldPaths)
  const submit = () => {
    if (kind === "mcp" || (schema !== null && parsedBindings !== null)) save.mutate()
  }
  const secretHelp = () => {
    if (tool?.auth.hasSecret === true) return t.keepHelp
    return auth === "basic" ? t.basicHelp : t.secretHelp
  }
  return (
    <Form onSubmit={submit} problem={general} draft={draft}>
      {tool === null ? (
        <Select
          label={t.kind}
          options={[
            ["http", t.http],
            ["mcp", t.mcp]
          ]}
          value={kind}
          onChange={(chosen) =>
            change({ kind: chosen, ...(chosen === "http" && auth === "oauth" ? { auth: "none" } : {}) })
          }
        />
      ) : null}
      <TextField
        label={common.name}
        help={t.nameHelp}
        required
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <ConflictingValue draft={draft} name="name" />
      <TextArea
        label={t.description}
        help={t.descriptionHelp}
        rows={2}
        value={value.description}
        onChange={(description) => change({ description })}
        error={errorOf("description")}
      />
      <ConflictingValue draft={draft} name="description" />
      {kind === "http" ? (
        <Select
          label={t.method}
          options={methods.map((one) => [one, one] as const)}
          value={value.method}
          onChange={(method) => change({ method })}
        />
      ) : null}
      <ConflictingValue draft={draft} name="method" />
      <TextField
        label={t.url}
        {...(kind === "http" ? { help: t.urlHelp } : {})}
        required
        value={value.url}
        onChange={(url) => change({ url })}
        error={errorOf("http.url") ?? errorOf("http") ?? errorOf("mcp")}
      />
      <ConflictingValue draft={draft} name="url" />
      {kind === "http" ? (
        <>
          <Parameters
            value={value.parameters}
            schema={schema}
            onChange={(parameters) => change({ parameters })}
            error={schema === null ? t.badJson : errorOf("parameters")}
          />
          <ConflictingValue draft={draft} name="parameters" />
          <TextArea
            label={t.bindings}
            help={t.bindingsHelp}
            guide="tools#values-of-the-request"
            rows={2}
            mono
            value={value.bindings}
            onChange={(bindings) => change({ bindings })}
            error={parsedBindings === null ? t.badBinding : errorOf("bindings")}
          />
          <ConflictingValue draft={draft} name="bindings" />
        </>
      ) : null}
      <Select
        label={t.auth}
        options={authKinds
          .filter((one) => one !== "oauth" || kind === "mcp")
          .map((one) => [one, t[one]] as const)}
        value={auth}
        onChange={(chosen) => change({ auth: chosen })}
      />
      <ConflictingValue draft={draft} name="auth" />
      {auth === "header" ? (
        <TextField
          label={t.headerName}
          required
          value={value.header}
          onChange={(header) => change({ header })}
          error={errorOf("auth.header")}
        />
      ) : null}
      <ConflictingValue draft={draft} name="header" />
      {auth === "oauth" ? (
        <OAuthFields
          value={value}
          onChange={(values) => change({ ...values })}
          errorOf={errorOf}
          conflictOf={(name) => <ConflictingValue draft={draft} name={name} />}
        />
      ) : null}
      {auth === "none" ? null : (
        <>
          <TextField
            label={t.secret}
            help={secretHelp()}
            type="password"
            autoComplete="off"
            value={value.secret}
            onChange={(secret) => change({ secret })}
            error={errorOf("auth.secret") ?? errorOf("auth")}
          />
          {auth === "oauth" ? null : (
            <TextField
              label={t.slot}
              help={t.slotHelp}
              value={value.slot}
              onChange={(slot) => change({ slot })}
              error={errorOf("auth.slot")}
            />
          )}
        </>
      )}
      <ConflictingValue draft={draft} name="slot" />
      <DialogActions draft={draft} busy={save.isPending} onClose={onClose} />
    </Form>
  )
}
