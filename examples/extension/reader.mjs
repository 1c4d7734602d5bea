/**
 * A custom reader: the products of a shop, page by page, with the changes since the last sync. `node
 * examples/extension/reader.mjs` reads them from a simulated shop.
 */
import * as Fs from "node:fs/promises"
import * as Http from "node:http"
import * as Os from "node:os"
import * as Path from "node:path"
import { createSpoke, reader } from "spoke"

export const shop = reader({
  title: { en: "Shop", de: "Shop" },
  description: { en: "The products of a shop.", de: "Die Produkte eines Shops." },
  settings: {
    url: { label: { en: "Address of the shop", de: "Adresse des Shops" }, address: true },
    token: { label: { en: "Access token", de: "Zugriffstoken" }, kind: "secret" }
  },
  read: async ({ fetch, known, position, settings: { token, url } }) => {
    const page = new URL("/products", url)
    if (position !== null) page.searchParams.set("after", String(position))
    const answer = await fetch(page.href, { headers: { authorization: `Bearer ${token}` } })
    const { next, products } = JSON.parse(answer.text())
    const addressOf = ({ id }) => new URL(`/products/${id}`, url).href
    const changed = products.filter((product) => known(addressOf(product)) !== product.updated)
    return {
      documents: changed.map((product) => ({
        uri: addressOf(product),
        title: product.name,
        content: product.description,
        revision: product.updated
      })),
      unchanged: products.filter((product) => !changed.includes(product)).map(addressOf),
      ...(next === null ? {} : { next })
    }
  }
})

const products = [
  {
    id: "1",
    name: "Kettle",
    updated: "2026-01-01",
    description: "The kettle boils a litre of water in two minutes."
  },
  {
    id: "2",
    name: "Teapot",
    updated: "2026-01-02",
    description: "The teapot is made of stoneware and holds a litre."
  },
  {
    id: "3",
    name: "Strainer",
    updated: "2026-01-03",
    description: "The strainer is made of steel and fits every cup."
  }
]

/** A simulated shop that returns two products at a time. */
const serve = async () => {
  const server = Http.createServer((request, response) => {
    const after = Number(new URL(request.url, "http://shop").searchParams.get("after") ?? 0)
    const allowed = request.headers.authorization === "Bearer secret"
    response.writeHead(allowed ? 200 : 401, { "content-type": "application/json" })
    const end = after + 2
    response.end(
      JSON.stringify({ products: products.slice(after, end), next: end < products.length ? end : null })
    )
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}

const dataDir = await Fs.mkdtemp(Path.join(Os.tmpdir(), "spoke-example-"))
const { close, url } = await serve()
const spoke = await createSpoke({ dataDir, readers: { shop }, fetchAllow: ["127.0.0.1"] })

const { id } = await spoke.agents.create({ name: "Shop" })
const agent = spoke.agent(id)
const { source } = await agent.sources.create({
  type: "CONNECTOR",
  name: "Products",
  config: { reader: "shop", settings: { url, token: "secret" } }
})
await agent.sources.ready(source.id)
const { reply } = await agent.chat({ message: "What is the teapot made of?" })
console.log(reply)

await spoke.close()
close()
await Fs.rm(dataDir, { recursive: true })
