// Preloaded (node --import) into servers of others that listen on all interfaces: they listen on the loopback then, and
// a line on stdout tells the tests where.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
    this.once("listening", () => console.log(`listening on http://127.0.0.1:${this.address().port}`));
    return listen.call(this, Number(port), "127.0.0.1", ...rest);
};
