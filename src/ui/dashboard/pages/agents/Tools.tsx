/** Tools: what an agent may call during a turn. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { deleteTool, type Tool, tools } from "../../api/Tools.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Confirm, Dialog } from "../../components/Dialog.tsx"
import { Empty, Loaded } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Keys.module.css"
import { ToolForm } from "./ToolForm.tsx"

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
  readonly mayChange: boolean
}

const Deeds = ({ agentId, tool }: { readonly agentId: string; readonly tool: Tool }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [editing, setEditing] = useState(false)
  return (
    <span className={css["deeds"]}>
      <Button kind="quiet" aria-label={`${common.edit}: ${tool.name}`} onPress={() => setEditing(true)}>
        {common.edit}
      </Button>
      <Dialog title={t.edit} isOpen={editing} onClose={() => setEditing(false)} wide>
        <ToolForm agentId={agentId} tool={tool} onClose={() => setEditing(false)} />
      </Dialog>
      <Confirm
        trigger={
          <Button kind="quiet" aria-label={`${common.delete}: ${tool.name}`}>
            {common.delete}
          </Button>
        }
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

const Tools = ({ agentId, mayChange }: Props) => {
  const t = useText(words)
  const common = useText(everywhere)
  const query = useInfiniteQuery(tools(agentId))
  const [creating, setCreating] = useState(false)
  const add = mayChange ? (
    <Button kind="primary" onPress={() => setCreating(true)}>
      {t.add}
    </Button>
  ) : null
  const credential = ({ auth }: Tool) => {
    if (auth.kind === "none") return t.open
    return auth.slot === undefined ? t.stored : t.slot(auth.slot)
  }
  return (
    <>
      <Dialog title={t.add} isOpen={creating} onClose={() => setCreating(false)} wide>
        <ToolForm agentId={agentId} tool={null} onClose={() => setCreating(false)} />
      </Dialog>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.tools)
          return rows.length === 0 ? (
            <Empty title={t.empty} action={add}>
              {t.emptyLead}
            </Empty>
          ) : (
            <>
              <div className={css["bar"]}>{add}</div>
              <Table
                label={t.title}
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: common.name,
                    cell: ({ name, description }) => (
                      <span className={css["name"]}>
                        <strong>{name}</strong>
                        <span className={css["soft"]}>{description}</span>
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
                          cell: (tool: Tool) => <Deeds agentId={agentId} tool={tool} />
                        }
                      ]
                    : [])
                ]}
              />
            </>
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button onPress={() => void query.fetchNextPage()}>{common.loadMore}</Button>
      ) : null}
    </>
  )
}

export default Tools
