/** Tools: what an agent may call during a turn. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { atLeast } from "../../../api/Session.ts"
import {
  connectTool,
  deleteTool,
  disconnectTool,
  type SignInProblem,
  type Tool,
  tools
} from "../../../api/Tools.ts"
import { Badge } from "../../../components/Badge.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../../components/Listing.tsx"
import { Empty } from "../../../components/Page.tsx"
import { Problem } from "../../../components/Problem.tsx"
import { Cell, RowActions, RowButton } from "../../../components/RowActions.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { AgentPart, type PartProps } from "../AgentPart.tsx"
import { TargetProblem } from "../problems/Problems.tsx"
import { ToolForm } from "./ToolForm.tsx"
import { ToolTest, useTestTitle } from "./ToolTest.tsx"

const words = texts(
  {
    title: "Tools",
    lead: "What the agent may look up or do during an answer.",
    add: "New tool",
    edit: "Edit tool",
    empty: "No tool yet",
    emptyLead:
      "A tool lets the agent look something up or do something: an HTTP address, or all the tools of an MCP server.",
    where: "Where",
    auth: "Credential",
    stored: "Stored",
    slot: (name: string) => `From the request: ${name}`,
    open: "None",
    connect: "Connect",
    again: "Connect again",
    connected: "Connected",
    refused: "Connect again",
    insufficient: "More scopes needed",
    demanded: (again: boolean) =>
      again
        ? "The server demands more scopes. “Connect again” asks for them:"
        : "The server demands scopes that the tool’s client was not granted:",
    unconnected: "Not connected",
    machine: "OAuth of the client",
    disconnect: "Disconnect",
    disconnection: "Disconnect tool",
    losing: (name: string) => `The agent can use “${name}” again once somebody connects it.`,
    made: "The tool is connected.",
    retry:
      "The sign-in took too long, was started elsewhere, or the tool was changed meanwhile. Connect again.",
    denied: "The authorization server refused the sign-in.",
    provider: "The authorization server could not be used. Try again later.",
    "signed-out": "Sign in as an admin, then connect again.",
    removal: "Delete tool",
    question: (name: string) => `The agent can no longer call “${name}”.`
  },
  {
    title: "Werkzeuge",
    lead: "Was der Agent beim Antworten nachschlagen oder tun darf.",
    add: "Neues Werkzeug",
    edit: "Werkzeug bearbeiten",
    empty: "Noch kein Werkzeug",
    emptyLead:
      "Mit einem Werkzeug schlägt der Agent etwas nach oder tut etwas: eine HTTP-Adresse oder alle Werkzeuge eines MCP-Servers.",
    where: "Wo",
    auth: "Zugang",
    stored: "Hinterlegt",
    slot: (name: string) => `Aus der Anfrage: ${name}`,
    open: "Keiner",
    connect: "Verbinden",
    again: "Neu verbinden",
    connected: "Verbunden",
    refused: "Neu verbinden",
    insufficient: "Braucht mehr Rechte",
    demanded: (again: boolean) =>
      again
        ? "Der Server verlangt weitere Berechtigungen (Scopes). „Neu verbinden“ fragt danach:"
        : "Der Server verlangt Berechtigungen (Scopes), die der Client des Werkzeugs nicht bekommen hat:",
    unconnected: "Nicht verbunden",
    machine: "OAuth des Clients",
    disconnect: "Trennen",
    disconnection: "Werkzeug trennen",
    losing: (name: string) => `Der Agent kann „${name}“ erst wieder nutzen, wenn es jemand verbindet.`,
    made: "Das Werkzeug ist verbunden.",
    retry:
      "Die Anmeldung hat zu lange gedauert, wurde anderswo begonnen, oder das Werkzeug wurde inzwischen geändert. Bitte neu verbinden.",
    denied: "Der Autorisierungsserver hat die Anmeldung abgelehnt.",
    provider: "Der Autorisierungsserver war nicht zu benutzen. Bitte später noch einmal versuchen.",
    "signed-out": "Bitte als Admin anmelden und dann neu verbinden.",
    removal: "Werkzeug löschen",
    question: (name: string) => `Der Agent kann „${name}“ dann nicht mehr aufrufen.`
  }
)

const outcomes = ["made", "retry", "denied", "provider", "signed-out"] as const satisfies ReadonlyArray<
  SignInProblem | "made"
>

/** How a sign-in at an authorization server ended, from the address of the redirect. */
const readSignInOutcome = () => {
  const outcome = new URLSearchParams(location.search).get("connection")
  return outcomes.find((one) => one === outcome) ?? null
}

const needsSignIn = ({ auth }: Tool) => auth.kind === "oauth" && auth.grant !== "client_credentials"

interface ActionsProps {
  readonly agentId: string
  readonly tool: Tool
  readonly connect: { readonly isPending: boolean; readonly mutate: (id: string) => void }
}

const Actions = ({ agentId, connect, tool }: ActionsProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const testTitle = useTestTitle()
  const refresh = () => queries.invalidateQueries({ queryKey: tools(agentId).queryKey })
  return (
    <RowActions
      of={tool.name}
      id={tool.id}
      actions={[
        {
          label: testTitle,
          does: { title: `${testTitle}: ${tool.name}`, form: () => <ToolTest tool={tool} />, wide: true }
        },
        {
          label: common.edit,
          does: {
            title: t.edit,
            form: (close) => <ToolForm agentId={agentId} tool={tool} onClose={close} />,
            wide: true
          }
        },
        ...(needsSignIn(tool) && tool.connection !== null
          ? [
              {
                label: t.disconnect,
                does: {
                  title: t.disconnection,
                  question: t.losing(tool.name),
                  action: t.disconnect,
                  onConfirm: () => disconnectTool(tool.id).then(refresh)
                }
              }
            ]
          : []),
        {
          label: common.delete,
          does: {
            title: t.removal,
            question: t.question(tool.name),
            action: common.delete,
            onConfirm: () => deleteTool(tool.id).then(refresh)
          }
        }
      ]}
    >
      {needsSignIn(tool) || tool.connection?.state === "insufficient" ? (
        <RowButton
          label={tool.connection === null ? t.connect : t.again}
          of={tool.name}
          busy={connect.isPending}
          onClick={() => connect.mutate(tool.id)}
        />
      ) : null}
    </RowActions>
  )
}

const Tools = ({ agent, user }: PartProps) => {
  const agentId = agent.id
  const mayChange = atLeast(user.role, "admin")
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const query = useInfiniteQuery(tools(agentId))
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <ToolForm agentId={agentId} tool={null} onClose={close} />,
    wide: true
  })
  const add = mayChange ? button : null
  const [signInOutcome, setSignInOutcome] = useState(readSignInOutcome)
  const connect = useMutation({
    mutationFn: connectTool,
    onMutate: () => setSignInOutcome(null),
    onSuccess: async ({ url }) => {
      if (url !== null) return location.assign(url)
      setSignInOutcome("made")
      return queries.invalidateQueries({ queryKey: tools(agentId).queryKey })
    }
  })
  const credential = (tool: Tool) => {
    const { auth, connection } = tool
    if (auth.kind === "none") return t.open
    if (connection?.state === "connected") {
      return (
        <Cell notes={[<code key="issuer">{connection.issuer}</code>]}>
          <Badge tone="good">{t.connected}</Badge>
        </Cell>
      )
    }
    if (connection?.state === "insufficient") {
      return (
        <Cell notes={[t.demanded(mayChange), <code key="scopes">{connection.missingScopes.join(" ")}</code>]}>
          <Badge tone="warn">{t.insufficient}</Badge>
        </Cell>
      )
    }
    if (connection?.state === "refused") return <Badge tone="bad">{t.refused}</Badge>
    if (needsSignIn(tool)) return <Badge tone="warn">{t.unconnected}</Badge>
    if (auth.kind === "oauth") return t.machine
    return auth.slot === undefined ? t.stored : t.slot(auth.slot)
  }
  return (
    <AgentPart
      part="tools"
      agent={agent}
      user={user}
      lead={t.lead}
      guide="tools"
      actions={isEmptyList(query, (page) => page.tools) ? undefined : add}
    >
      {dialog}
      {signInOutcome === "made" ? <p role="status">{t.made}</p> : null}
      {signInOutcome === null || signInOutcome === "made" ? null : (
        <Problem problem={null} sentence={t[signInOutcome]} />
      )}
      {connect.isError ? <Problem problem={connect.error} /> : null}
      <Listing
        query={query}
        rowsOf={(page) => page.tools}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={add} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: common.name,
            cell: ({ name, description }) => (
              <Cell
                notes={[
                  description,
                  <TargetProblem key="problem" agentId={agentId} kind="tool" target={name} user={user} />
                ]}
              >
                <strong>{name}</strong>
              </Cell>
            )
          },
          {
            title: t.where,
            cell: ({ http, mcp }) => (
              <span>
                <Badge tone="neutral">{http?.method ?? "MCP"}</Badge> <code>{http?.url ?? mcp?.url}</code>
              </span>
            )
          },
          { title: t.auth, cell: credential }
        ]}
        actions={mayChange ? (tool) => <Actions agentId={agentId} tool={tool} connect={connect} /> : null}
      />
    </AgentPart>
  )
}

export default Tools
