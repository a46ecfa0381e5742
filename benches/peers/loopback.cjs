// Loaded before a server that cannot be told where to listen: keeps it off the network.
const { Server } = require('node:net');

const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  return typeof port === 'number' ? listen.call(this, port, '127.0.0.1', ...rest) : listen.call(this, port, ...rest);
};
