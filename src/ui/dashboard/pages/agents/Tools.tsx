/** Tools: what an agent may call during a turn. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { atLeast, type User } from "../../api/Session.ts"
import { deleteTool, type Tool, tools } from "../../api/Tools.ts"
import { Badge } from "../../components/Badge.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Listing, useAdding } from "../../components/Listing.tsx"
import { Empty } from "../../components/Page.tsx"
import { RowButton, RowConfirm } from "../../components/RowActions.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { TargetProblem } from "./problems/Problems.tsx"
import { ToolForm } from "./ToolForm.tsx"
import css from "./Keys.module.css"

const words = texts(
  {
    title: "Tools",
    add: "New tool",
    edit: "Edit tool",
    empty: "No tool yet",
    emptyLead:
      "A tool lets the agent look something up or do something: an HTTP address, or all the tools of an MCP server.",
    where: "Where",
    auth: "Credential",
    stored: "stored",
    slot: (name: string) => `from the request: ${name}`,
    open: "none",
    actions: "Actions",
    removal: "Delete tool",
    question: (name: string) => `The agent can no longer call “${name}”.`
  },
  {
    title: "Werkzeuge",
    add: "Neues Werkzeug",
    edit: "Werkzeug bearbeiten",
    empty: "Noch kein Werkzeug",
    emptyLead:
      "Mit einem Werkzeug schlägt der Agent etwas nach oder tut etwas: eine HTTP-Adresse oder alle Werkzeuge eines MCP-Servers.",
    where: "Wo",
    auth: "Zugang",
    stored: "hinterlegt",
    slot: (name: string) => `aus der Anfrage: ${name}`,
    open: "keiner",
    actions: "Aktionen",
    removal: "Werkzeug löschen",
    question: (name: string) => `Der Agent kann „${name}“ dann nicht mehr aufrufen.`
  }
)

interface Props {
  readonly agentId: string
  readonly user: User
}

const Actions = ({ agentId, tool }: { readonly agentId: string; readonly tool: Tool }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [editing, setEditing] = useState(false)
  return (
    <span className={css["actions"]}>
      <RowButton label={common.edit} of={tool.name} onPress={() => setEditing(true)} />
      <Dialog title={t.edit} isOpen={editing} onClose={() => setEditing(false)} wide>
        <ToolForm agentId={agentId} tool={tool} onClose={() => setEditing(false)} />
      </Dialog>
      <RowConfirm
        of={tool.name}
        title={t.removal}
        question={t.question(tool.name)}
        action={common.delete}
        onConfirm={async () => {
          await deleteTool(tool.id)
          await queries.invalidateQueries({ queryKey: tools(agentId).queryKey })
        }}
      />
    </span>
  )
}

const Tools = ({ agentId, user }: Props) => {
  const mayChange = atLeast(user.role, "admin")
  const t = useText(words)
  const common = useText(everywhere)
  const query = useInfiniteQuery(tools(agentId))
  const { button, dialog } = useAdding({
    title: t.add,
    form: (close) => <ToolForm agentId={agentId} tool={null} onClose={close} />,
    wide: true
  })
  const add = mayChange ? button : null
  const credential = ({ auth }: Tool) => {
    if (auth.kind === "none") return t.open
    return auth.slot === undefined ? t.stored : t.slot(auth.slot)
  }
  return (
    <>
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.tools}
        empty={
          <Empty title={t.empty} action={add}>
            {t.emptyLead}
          </Empty>
        }
        bar={<div className={css["bar"]}>{add}</div>}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: common.name,
            cell: ({ name, description }) => (
              <span className={css["name"]}>
                <strong>{name}</strong>
                <span className={css["soft"]}>{description}</span>
                <TargetProblem agentId={agentId} kind="tool" target={name} user={user} />
              </span>
            )
          },
          {
            title: t.where,
            cell: ({ http, mcp }) => (
              <span className={css["name"]}>
                <span>
                  <Badge tone="neutral">{http?.method ?? "MCP"}</Badge>
                </span>
                <code>{http?.url ?? mcp?.url}</code>
              </span>
            )
          },
          { title: t.auth, cell: credential },
          ...(mayChange
            ? [
                {
                  title: t.actions,
                  silent: true,
                  end: true,
                  cell: (tool: Tool) => <Actions agentId={agentId} tool={tool} />
                }
              ]
            : [])
        ]}
      />
    </>
  )
}

export default Tools
