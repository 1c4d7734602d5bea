/**
 * A site of as many pages as are asked for, for the figures of ingestion: `/sitemap-FIRST-COUNT.xml` lists the pages
 * `/p/FIRST` and on, of about 6,000 characters under four headings each. Serves on a free port and prints it.
 */
import * as http from "node:http"
import { passage } from "./corpus.mjs"

const part = (place, number) => {
  const [one, other] = [0, 1].map((half) => passage(place * 8 + number * 2 + half))
  return `<h2>Part ${number + 1} of ${place}</h2><p>${one}</p><p>${other}</p>`
}

const html = (place) =>
  `<!doctype html><html><head><title>Page ${place}</title></head><body><main><h1>Page ${place}</h1>${[
    0, 1, 2, 3
  ]
    .map((number) => part(place, number))
    .join("")}</main></body></html>`

const sitemap = (host, first, count) =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${Array.from(
    { length: count },
    (_, place) => `<url><loc>http://${host}/p/${first + place}</loc></url>`
  ).join("")}</urlset>`

const server = http.createServer((request, response) => {
  const list = /^\/sitemap-(\d+)-(\d+)\.xml$/.exec(request.url)
  const page = /^\/p\/(\d+)$/.exec(request.url)
  if (list !== null) {
    response.writeHead(200, { "content-type": "application/xml" })
    response.end(sitemap(request.headers.host, Number(list[1]), Number(list[2])))
  } else if (page !== null) {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    response.end(html(Number(page[1])))
  } else response.writeHead(404).end()
})
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
