/** Making and changing a tool. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
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
} from "../../api/Tools.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { LongText, Select, TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    kind: "What it is",
    http: "HTTP address",
    mcp: "MCP server",
    nameHelp: "Letters, digits and _, as the model sees it.",
    description: "What it does",
    descriptionHelp: "The model decides by this when to call it.",
    method: "Method",
    url: "Address",
    urlHelp: "{name} stands for an argument of the model or a binding.",
    parameters: "Arguments of the model",
    parametersHelp: "A JSON Schema of type object.",
    bindings: "Bindings",
    bindingsHelp:
      "One a line: /customer/id → path:id takes a value of toolContext that the model never sees.",
    auth: "Credential",
    none: "None",
    bearer: "Bearer token",
    header: "Header",
    basic: "User and password",
    headerName: "Name of the header",
    secret: "Secret",
    secretHelp: "Kept encrypted, never shown again.",
    keepHelp: "Empty: the stored one stays.",
    basicHelp: "user:password. Kept encrypted, never shown again.",
    slot: "Slot",
    slotHelp: "Instead of a secret: the name under which each request brings its own credential.",
    badJson: "This is not JSON.",
    badBinding: "Write each as: from → to."
  },
  {
    kind: "Was es ist",
    http: "HTTP-Adresse",
    mcp: "MCP-Server",
    nameHelp: "Buchstaben, Ziffern und _, so sieht es das Modell.",
    description: "Was es tut",
    descriptionHelp: "Danach entscheidet das Modell, wann es das Werkzeug ruft.",
    method: "Methode",
    url: "Adresse",
    urlHelp: "{name} steht für ein Argument des Modells oder eine Bindung.",
    parameters: "Argumente des Modells",
    parametersHelp: "Ein JSON-Schema vom Typ object.",
    bindings: "Bindungen",
    bindingsHelp:
      "Je Zeile eine: /customer/id → path:id nimmt einen Wert aus toolContext, den das Modell nie sieht.",
    auth: "Zugang",
    none: "Keiner",
    bearer: "Bearer-Token",
    header: "Header",
    basic: "Benutzer und Passwort",
    headerName: "Name des Headers",
    secret: "Geheimnis",
    secretHelp: "Wird verschlüsselt aufbewahrt und nie wieder gezeigt.",
    keepHelp: "Leer: das hinterlegte bleibt.",
    basicHelp: "benutzer:passwort. Wird verschlüsselt aufbewahrt und nie wieder gezeigt.",
    slot: "Slot",
    slotHelp: "Statt eines Geheimnisses: der Name, unter dem jede Anfrage ihren eigenen Zugang mitbringt.",
    badJson: "Das ist kein JSON.",
    badBinding: "Jede so schreiben: von → nach."
  }
)

const emptyParameters = '{\n  "type": "object",\n  "properties": {}\n}'

const parsed = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null
  } catch {
    return null
  }
}

/** Null when a line is no binding. */
const bindingsOf = (text: string): ReadonlyArray<Binding> | null => {
  const found = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^\s*(\/\S*)\s*(?:→|->)\s*(\S+)\s*$/.exec(line))
  const bindings = found.flatMap((match) =>
    match?.[1] === undefined || match[2] === undefined ? [] : [{ from: match[1], to: match[2] }]
  )
  return bindings.length === found.length ? bindings : null
}

interface Props {
  readonly agentId: string
  /** Null for a new one. */
  readonly tool: Tool | null
  readonly onClose: () => void
}

export const ToolForm = ({ agentId, tool, onClose }: Props) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [kind, setKind] = useState<"http" | "mcp">(tool?.mcp === undefined ? "http" : "mcp")
  const [name, setName] = useState(tool?.name ?? "")
  const [description, setDescription] = useState(tool?.description ?? "")
  const [method, setMethod] = useState<Method>(tool?.http?.method ?? "GET")
  const [url, setUrl] = useState(tool?.http?.url ?? tool?.mcp?.url ?? "")
  const [parameters, setParameters] = useState(
    tool === null ? emptyParameters : JSON.stringify(tool.parameters, null, 2)
  )
  const [bindings, setBindings] = useState(
    (tool?.bindings ?? []).map(({ from, to }) => `${from} → ${to}`).join("\n")
  )
  const [auth, setAuth] = useState<AuthKind>(tool?.auth.kind ?? "none")
  const [header, setHeader] = useState(tool?.auth.header ?? "")
  const [secret, setSecret] = useState("")
  const [slot, setSlot] = useState(tool?.auth.slot ?? "")
  const schema = parsed(parameters)
  const bound = bindingsOf(bindings)

  const save = useMutation({
    mutationFn: () => {
      const body: ToolInput = {
        name,
        description,
        ...(kind === "http"
          ? {
              http: { ...tool?.http, method, url },
              parameters: schema ?? {},
              bindings: bound ?? []
            }
          : { mcp: { url } }),
        auth: {
          kind: auth,
          ...(auth === "header" && header !== "" ? { header } : {}),
          ...(auth === "none" || slot === "" ? {} : { slot }),
          ...(auth === "none" || secret === "" ? {} : { secret })
        }
      }
      return tool === null ? createTool(agentId, body) : patchTool(tool.id, body)
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: tools(agentId).queryKey })
      onClose()
    }
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (kind === "mcp" || (schema !== null && bound !== null)) save.mutate()
  }
  const secretHelp = () => {
    if (tool?.auth.hasSecret === true) return t.keepHelp
    return auth === "basic" ? t.basicHelp : t.secretHelp
  }
  return (
    <form onSubmit={submit} style={{ display: "contents" }}>
      {save.error === null ? null : <Problem problem={save.error} />}
      {tool === null ? (
        <Select
          label={t.kind}
          options={[
            ["http", t.http],
            ["mcp", t.mcp]
          ]}
          value={kind}
          onChange={setKind}
        />
      ) : null}
      <TextField label={common.name} help={t.nameHelp} isRequired value={name} onChange={setName} />
      <LongText
        label={t.description}
        help={t.descriptionHelp}
        rows={2}
        value={description}
        onChange={setDescription}
      />
      {kind === "http" ? (
        <Select
          label={t.method}
          options={methods.map((one) => [one, one] as const)}
          value={method}
          onChange={setMethod}
        />
      ) : null}
      <TextField
        label={t.url}
        {...(kind === "http" ? { help: t.urlHelp } : {})}
        isRequired
        value={url}
        onChange={setUrl}
      />
      {kind === "http" ? (
        <>
          <LongText
            label={t.parameters}
            help={t.parametersHelp}
            rows={6}
            mono
            value={parameters}
            onChange={setParameters}
            error={schema === null ? t.badJson : undefined}
          />
          <LongText
            label={t.bindings}
            help={t.bindingsHelp}
            rows={2}
            mono
            value={bindings}
            onChange={setBindings}
            error={bound === null ? t.badBinding : undefined}
          />
        </>
      ) : null}
      <Select
        label={t.auth}
        options={authKinds.map((one) => [one, t[one]] as const)}
        value={auth}
        onChange={setAuth}
      />
      {auth === "header" ? (
        <TextField label={t.headerName} isRequired value={header} onChange={setHeader} />
      ) : null}
      {auth === "none" ? null : (
        <>
          <TextField
            label={t.secret}
            help={secretHelp()}
            type="password"
            autoComplete="off"
            value={secret}
            onChange={setSecret}
          />
          <TextField label={t.slot} help={t.slotHelp} value={slot} onChange={setSlot} />
        </>
      )}
      <Actions>
        <Button onPress={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </form>
  )
}
